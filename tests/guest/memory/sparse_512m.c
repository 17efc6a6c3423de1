#include "guest.h"

int main(void) {
  const size_t size = (size_t)512 << 20;
  unsigned char* p =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  Fact(p != MAP_FAILED, "512 MiB mapped");
  for (size_t i = 0; i < size; i += (size_t)8 << 20) p[i] = 1;
  unsigned long sum = 0;
  for (size_t i = 0; i < size; i += 16 * kPage) sum += p[i];
  Fact(sum == 64, "64 written places among 8192 read ones");
  const int fd = memfd_create("sparse", MFD_CLOEXEC);
  if (ftruncate(fd, (off_t)size) != 0) return 1;
  unsigned char* q = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
  if (pwrite(fd, "x", 1, (off_t)size - 1) != 1) return 1;
  Fact(q[size - 1] == 'x' && q[0] == 0 && q[size / 2] == 0, "a sparse file of 512 MiB");
  return Done();
}
