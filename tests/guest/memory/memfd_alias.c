#include "guest.h"

int main(void) {
  const int fd = memfd_create("alias", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || ftruncate(fd, 4 * kPage) != 0) return 1;
  char* alias[8];
  for (int i = 0; i < 8; ++i)
    alias[i] = mmap(NULL, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  int good = 0;
  for (int i = 0; i < 800; ++i) {
    volatile char* writer = alias[i % 8];
    writer[i % (4 * kPage)] = (char)i;
    bool all = true;
    for (int j = 0; j < 8; ++j) all = all && ((volatile char*)alias[j])[i % (4 * kPage)] == (char)i;
    good += all;
  }
  Fact(good == 800, "8 mappings of one memfd are one memory");
  // A ring buffer: the same page twice in a row.
  char* ring = Map(2 * kPage, PROT_NONE);
  mmap(ring, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  mmap(ring + kPage, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  memcpy(ring + kPage - 4, "wrapping", 8);
  Fact(memcmp(ring, "ping", 4) == 0 && memcmp(ring + 2 * kPage - 4, "wrap", 4) == 0,
       "a ring buffer wraps");
  __atomic_store_n((int*)(void*)ring, 5, __ATOMIC_SEQ_CST);
  __atomic_add_fetch((int*)(void*)(ring + kPage), 3, __ATOMIC_SEQ_CST);
  Fact(*(int*)(void*)ring == 8, "atomics on both are one");
  for (int i = 0; i < 8; ++i) munmap(alias[i], 4 * kPage);
  munmap(ring, 2 * kPage);
  Fact(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0, "sealed");
  Fact(mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EPERM,
       "a writable mapping is EPERM now");
  return Done();
}
