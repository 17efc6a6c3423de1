#include "guest.h"

int main(void) {
  int good = 0;
  for (int i = 0; i < 50; ++i) {
    char* p = mmap(NULL, 16 * kPage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (p == MAP_FAILED) break;
    p[0] = 1;
    good += (uintptr_t)p + 16 * kPage <= 0x80000000;
  }
  Fact(good == 50, "50 mappings below 2 GiB");
  char* hint =
      mmap((void*)0x10000000, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Fact(hint == (char*)0x10000000, "a low hint is honoured");
  return Done();
}
