#include "guest.h"

int main(int argc, char** argv) {
  if (argc > 1) {
    Fact(argc == 5, "five arguments");
    Fact(strcmp(argv[0], "a name of its own") == 0, "argv[0] as given");
    Fact(strcmp(argv[1], "") == 0 && strcmp(argv[2], "with blanks and \"quotes\"") == 0 &&
             strcmp(argv[3], "\xff\x01") == 0,
         "arguments as given");
    Fact(strlen(argv[4]) == 100000, "a long one");
    Fact(argv[argc] == NULL, "NULL at the end");
    Fact(environ[0] != NULL && strcmp(environ[0], "ONE=1") == 0 &&
             strcmp(environ[1], "EMPTY=") == 0 && environ[2] == NULL,
         "the environment as given");
    Fact(getppid() == atoi(getenv("ONE")) || getppid() > 0, "process goes on");
    return Done();
  }
  static char large[100001];
  memset(large, 'x', 100000);
  char* arguments[] = {(char*)"a name of its own", (char*)"", (char*)"with blanks and \"quotes\"",
                       (char*)"\xff\x01",          large,     NULL};
  char* environment[] = {(char*)"ONE=1", (char*)"EMPTY=", NULL};
  (void)argv;
  execve("/proc/self/exe", arguments, environment);
  Fact(false, "exec failed");
  return 1;
}
