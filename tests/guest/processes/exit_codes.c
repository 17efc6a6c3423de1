#include "guest.h"

int main(void) {
  int good = 0;
  for (int code = 0; code < 256; code += 15) {
    const pid_t child = fork();
    if (child == 0) exit(code);
    good += WEXITSTATUS(Reap(child)) == code;
  }
  Fact(good == 18, "exit codes 0 to 255");
  const pid_t child = fork();
  if (child == 0) exit(256 + 7);
  Fact(WEXITSTATUS(Reap(child)) == 7, "only the low 8 bits count");
  return Done();
}
