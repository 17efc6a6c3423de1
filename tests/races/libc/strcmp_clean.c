// strcmp reads no further than the first difference needs.
// CLEAN
#include <string.h>

#include "race.h"

char left[32] = "the same?";
char right[32] = "the Same!";

static void* First(void* argument) {
  Use(strcmp((char*)Opaque((size_t)left), right));
  return argument;
}

static void* Second(void* argument) {
  right[8] = '.';
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
