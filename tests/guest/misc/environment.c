#include "guest.h"

int main(void) {
  Fact(setenv("GUEST_A", "1", 1) == 0 && strcmp(getenv("GUEST_A"), "1") == 0, "setenv");
  Fact(unsetenv("GUEST_A") == 0 && getenv("GUEST_A") == NULL, "unsetenv");
  Fact(system("exit 3") == 3 << 8, "system");
  FILE* stream = popen("echo piped", "r");
  char text[32] = "";
  Fact(stream != NULL && fgets(text, sizeof(text), stream) != NULL && strcmp(text, "piped\n") == 0,
       "popen");
  Fact(pclose(stream) == 0, "pclose");
  return Done();
}
