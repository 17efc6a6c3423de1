// An array that main fills and threads split: page by page it has one user after the other.
// CLEAN
// TAGS fast
#include "race.h"

enum { kPages = 8, kInts = 1024 };
int array[kPages * kInts] __attribute__((aligned(4096)));

static void* Worker(void* argument) {
  int* mine = (int*)argument;
  for (int page = 0; page < kPages / 2; page++) {
    for (int i = 0; i < kInts; i += 128) mine[page * kInts + i]++;
  }
  return NULL;
}

int main(void) {
  for (int i = 0; i < kPages * kInts; i++) array[i] = 1;
  const pthread_t first = Start(Worker, array);
  const pthread_t second = Start(Worker, array + kPages / 2 * kInts);
  Join(first);
  Join(second);
  int sum = 0;
  for (int i = 0; i < kPages * kInts; i++) sum += array[i];
  return sum == kPages * kInts + kPages * 8 ? Done() : 1;
}
