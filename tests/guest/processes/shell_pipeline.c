// What a shell does for `a | b > file`: groups, pipes, redirections, three children at once.
#include "guest.h"

int main(void) {
  const int file = OpenTemporary();
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const pid_t writer = fork();
  if (writer == 0) {
    setpgid(0, 0);
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    for (int i = 0; i < 1000; ++i) printf("line %d\n", i);
    exit(0);
  }
  setpgid(writer, writer);
  const pid_t filter = fork();
  if (filter == 0) {
    setpgid(0, writer);
    dup2(ends[0], 0);
    dup2(file, 1);
    close(ends[0]);
    close(ends[1]);
    char line[64];
    while (fgets(line, sizeof(line), stdin) != NULL) {
      if (strchr(line, '7') != NULL) fputs(line, stdout);
    }
    exit(0);
  }
  close(ends[0]);
  close(ends[1]);
  Fact(Reap(writer) == 0 && Reap(filter) == 0, "both ended well");
  lseek(file, 0, SEEK_SET);
  FILE* stream = fdopen(file, "r");
  char line[64];
  int lines = 0;
  while (fgets(line, sizeof(line), stream) != NULL) ++lines;
  Fact(lines == 271, "271 lines with a 7");
  return Done();
}
