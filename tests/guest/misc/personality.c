#include <sys/personality.h>

#include "guest.h"

int main(int argc, char** argv) {
  if (argc > 1) {
    Fact((personality(0xffffffff) & ADDR_NO_RANDOMIZE) != 0, "the personality stays over exec");
    return Done();
  }
  const int old = personality(0xffffffff);
  if (old == -1 || personality((unsigned long)old | ADDR_NO_RANDOMIZE) == -1)
    Skip("no personality");
  Fact((personality(0xffffffff) & ADDR_NO_RANDOMIZE) != 0, "address randomisation switched off");
  char* arguments[] = {argv[0], (char*)"again", NULL};
  execv("/proc/self/exe", arguments);
  return 1;
}
