// A table of function pointers, filled before the threads exist.
// CLEAN
#include "race.h"

static int Double(int value) { return 2 * value; }
static int Square(int value) { return value * value; }
int (*table[2])(int);
int results[2];

static void* Caller(void* argument) {
  const long index = (long)argument;
  results[index] = table[index](3);
  return NULL;
}

int main(void) {
  table[0] = Double;
  table[1] = Square;
  const pthread_t first = Start(Caller, (void*)0);
  const pthread_t second = Start(Caller, (void*)1);
  Join(first);
  Join(second);
  return results[0] + results[1] == 15 ? Done() : 1;
}
