// Eight, four, two and one bytes, one after the other.
// CLEAN
#include "race.h"

struct {
  long eight;
  int four;
  short two;
  char one;
  char other;
} block;

static void* First(void* argument) {
  block.eight = 1;
  block.two = 1;
  block.other = 1;
  return argument;
}

static void* Second(void* argument) {
  block.four = 2;
  block.one = 2;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
