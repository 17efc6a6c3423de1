// Every thread has its own thread-local variables.
// CLEAN
// BUILD O0 O2 static fixed
#include "race.h"

__thread int counter;
__thread int initialised = 3;

static void* Worker(void* argument) {
  for (int i = 0; i < 5; i++) {
    counter++;
    initialised++;
  }
  Check(counter == 5 && initialised == 8);
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  Worker(NULL);
  return Done();
}
