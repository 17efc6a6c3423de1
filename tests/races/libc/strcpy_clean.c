// strcpy and strlen touch nothing after the final zero, though they read in larger units.
// CLEAN
#include <string.h>

#include "race.h"

char source[32] = "twenty-one characters";
char target[32];

static void* First(void* argument) {
  strcpy(target, source);
  Use((long)strlen(source));
  Use(strcmp(source, target));
  Use((long)strchr(source, 0));
  return argument;
}

static void* Second(void* argument) {
  source[22] = 2;
  target[22] = 2;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
