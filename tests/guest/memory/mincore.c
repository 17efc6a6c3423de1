#include "guest.h"

int main(void) {
  char* p = Map(16 * kPage, PROT_READ | PROT_WRITE);
  p[3 * kPage] = 1;
  unsigned char resident[16];
  memset(resident, 0xff, sizeof(resident));
  Fact(mincore(p, 16 * kPage, resident) == 0, "mincore");
  Fact((resident[3] & 1) == 1, "a touched page is resident");
  Fact(mincore(p, 16 * kPage, NULL) == -1 && errno == EFAULT, "EFAULT");
  munmap(p + 8 * kPage, kPage);
  Fact(mincore(p, 16 * kPage, resident) == -1 && errno == ENOMEM, "a hole is ENOMEM");
  Fact(mlock(p, kPage) == 0 || errno == EPERM || errno == ENOMEM, "mlock");
  munlock(p, kPage);
  char* locked = mmap(NULL, 4 * kPage, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  Fact(mincore(locked, 4 * kPage, resident) == 0 && (resident[0] & resident[3] & 1) == 1,
       "MAP_POPULATE populates");
  return Done();
}
