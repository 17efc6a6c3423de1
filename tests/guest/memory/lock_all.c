#include "guest.h"

int main(void) {
  void* reserved =
      mmap(NULL, (size_t)64 << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const int result = mlockall(MCL_CURRENT | MCL_FUTURE);
  Fact(reserved != MAP_FAILED && (result == 0 || errno == ENOMEM || errno == EPERM),
       "locked, or not permitted");
  char* p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Fact(p != MAP_FAILED || errno == EAGAIN, "mapped, or beyond the limit");
  if (p != MAP_FAILED) memset(p, 1, 1 << 20);
  Fact(munlockall() == 0, "unlocked");
  return Done();
}
