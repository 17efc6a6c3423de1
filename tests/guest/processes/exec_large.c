// More than a megabyte of arguments and environment.
#include "guest.h"

enum { kPieces = 12, kPiece = 100000 };

int main(int argc, char** argv, char** environment) {
  if (argc > 2) {
    bool good = argc == kPieces + 1;
    for (int i = 1; i < argc; ++i)
      good = good && strlen(argv[i]) == kPiece && argv[i][0] == 'a' + i &&
             argv[i][kPiece - 1] == 'a' + i;
    Fact(good, "twelve arguments of 100000 bytes");
    Fact(environment[0] != NULL && strlen(environment[0]) == kPiece && environment[1] == NULL,
         "and one such variable");
    char local;
    Fact((char*)argv > &local && argv[0] > (char*)argv, "above the stack");
    return Done();
  }
  char* arguments[kPieces + 2] = {argv[0]};
  for (int i = 1; i <= kPieces; ++i) {
    arguments[i] = malloc(kPiece + 1);
    memset(arguments[i], 'a' + i, kPiece);
    arguments[i][kPiece] = '\0';
  }
  char* variables[] = {arguments[1], NULL};
  execve("/proc/self/exe", arguments, variables);
  Fact(false, "exec");
  return 1;
}
