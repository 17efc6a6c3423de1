// Threads take indices from an atomic counter; each element has one user.
// CLEAN
#include "race.h"

enum { kItems = 12 };
int items[kItems];
int next;

static void* Worker(void* argument) {
  int index;
  while ((index = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < kItems) items[index] += index;
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  int sum = 0;
  for (int i = 0; i < kItems; i++) sum += items[i];
  return sum == 66 ? Done() : 1;
}
