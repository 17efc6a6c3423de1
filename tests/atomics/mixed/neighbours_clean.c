// An atomic byte beside plain ones of other threads.
// CLEAN
#include <stdatomic.h>

#include "race.h"

static struct {
  char before;
  _Atomic char shared;
  char after;
} bytes;

static void* First(void* argument) {
  bytes.before++;
  bytes.shared++;
  return argument;
}

static void* Second(void* argument) {
  bytes.after++;
  bytes.shared++;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return bytes.shared == 2 ? Done() : 1;
}
