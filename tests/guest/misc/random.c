#include <sys/random.h>

#include "guest.h"

int main(void) {
  unsigned char a[256];
  unsigned char b[256];
  Fact(getrandom(a, sizeof(a), 0) == sizeof(a) && getrandom(b, sizeof(b), 0) == sizeof(b),
       "getrandom");
  Fact(memcmp(a, b, sizeof(a)) != 0, "differs");
  const pid_t child = fork();
  if (child == 0) {
    unsigned char c[256];
    _exit(getrandom(c, sizeof(c), 0) == sizeof(c) && memcmp(c, a, sizeof(c)) != 0 ? 0 : 1);
  }
  Fact(Reap(child) == 0, "in a child too");
  Fact(getrandom(a, sizeof(a), 0xff) == -1 && errno == EINVAL, "unknown flags: EINVAL");
  return Done();
}
