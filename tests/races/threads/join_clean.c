// Two threads one after the other: creation and join order everything.
// CLEAN
// BUILD O0 O2 static fixed
#include "race.h"

int value;

static void* Writer(void* argument) {
  value++;
  return argument;
}

int main(void) {
  for (int i = 0; i < 3; i++) {
    Join(Start(Writer, NULL));
    value++;
  }
  return value == 6 ? Done() : 1;
}
