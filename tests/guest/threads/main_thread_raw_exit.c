// exit (not exit_group) of the main thread leaves a zombie leader; the others go on.
#include "guest.h"

static void* Later(void* argument) {
  (void)argument;
  char state = 0;
  for (int i = 0; i < 2000 && state != 'Z'; ++i) {
    FILE* file = fopen("/proc/self/stat", "r");
    if (file == NULL) break;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = '?';
    fclose(file);
    SleepMs(1);
  }
  Fact(state == 'Z', "the process shows as a zombie while a thread lives");
  _exit(Done());
}

int main(void) {
  Start(Later, NULL);
  syscall(SYS_exit, 3);
  return 1;
}
