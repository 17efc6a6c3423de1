#include "guest.h"

int main(void) {
  const size_t size = 256 * kPage;
  char* p = Map(size, PROT_READ | PROT_WRITE);
  int good = 0;
  for (int round = 0; round < 20; ++round) {
    memset(p, round + 1, size);
    madvise(p + 10 * kPage, 100 * kPage, MADV_DONTNEED);
    bool zero = true;
    for (size_t i = 10; i < 110; ++i) zero = zero && p[i * kPage] == 0 && p[i * kPage + 4095] == 0;
    good += zero && p[9 * kPage] == round + 1 && p[110 * kPage] == round + 1;
  }
  Fact(good == 20, "20 times: given back pages are zero, the others keep their data");
  memset(p, 7, size);
  Fact(madvise(p, size, MADV_FREE) == 0, "MADV_FREE");
  bool either = true;
  for (size_t i = 0; i < size; i += kPage) either = either && (p[i] == 7 || p[i] == 0);
  Fact(either, "old contents or zero");
  p[0] = 8;
  Fact(p[0] == 8, "and writable");
  Fact(madvise(p, size, 9999) == -1 && errno == EINVAL, "unknown advice is EINVAL");
  Fact(madvise(p, size, MADV_HUGEPAGE) == 0 || errno == EINVAL, "huge pages may be asked for");
  return Done();
}
