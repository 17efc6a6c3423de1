// Whoever counts last may use what all the others wrote.
// CLEAN
// BUILD O0 O2 static
// TAGS fast
#include "race.h"

enum { kThreads = 3 };
int values[kThreads];
int arrived;

static void* Worker(void* argument) {
  const long index = (long)argument;
  values[index] = 1;
  if (__atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST) == kThreads) {
    for (int i = 0; i < kThreads; i++) values[i]++;
  }
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; i++) threads[i] = Start(Worker, (void*)i);
  int sum = 0;
  for (int i = 0; i < kThreads; i++) Join(threads[i]);
  for (int i = 0; i < kThreads; i++) sum += values[i];
  return sum == 2 * kThreads ? Done() : 1;
}
