// pthread_exit in a nested function; the joiner reads what the thread left.
// CLEAN
#include "race.h"

int value;

__attribute__((noinline)) static void Leave(void) {
  value = 3;
  pthread_exit(&value);
}

static void* Worker(void* argument) {
  Leave();
  return argument;
}

int main(void) {
  const pthread_t worker = Start(Worker, NULL);
  void* result;
  Check(pthread_join(worker, &result) == 0);
  return *(int*)result == 3 ? Done() : 1;
}
