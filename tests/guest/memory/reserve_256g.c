#include "guest.h"

int main(void) {
  const size_t size = (size_t)256 << 30;
  char* p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  Fact(p != MAP_FAILED, "256 GiB reserved");
  if (p == MAP_FAILED) return 1;
  const size_t places[] = {0, (size_t)1 << 30, (size_t)100 << 30, size - (1 << 20)};
  for (int i = 0; i < 4; ++i) {
    Fact(mprotect(p + places[i], 1 << 20, PROT_READ | PROT_WRITE) == 0, "a megabyte committed");
    memset(p + places[i], i + 1, 1 << 20);
  }
  bool good = true;
  for (int i = 0; i < 4; ++i) good = good && p[places[i] + 12345] == i + 1;
  Fact(good, "all four hold their data");
  Fact(madvise(p + places[1], 1 << 20, MADV_DONTNEED) == 0 && p[places[1]] == 0, "given back");
  Fact(munmap(p, size) == 0, "unmapped");
  // As allocators do to get an alignment: reserve twice as much, cut off both ends.
  const size_t align = (size_t)4 << 30;
  p = mmap(NULL, 2 * align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
           0);
  Fact(p != MAP_FAILED, "8 GiB reserved, read-write");
  char* aligned = (char*)(((uintptr_t)p + align - 1) & ~(align - 1));
  if (aligned > p) munmap(p, (size_t)(aligned - p));
  munmap(aligned + align, align - (size_t)(aligned - p));
  aligned[0] = aligned[align - 1] = 9;
  Fact(aligned[0] == 9 && aligned[align - 1] == 9 && aligned[align / 2] == 0,
       "cut to an aligned 4 GiB");
  return Done();
}
