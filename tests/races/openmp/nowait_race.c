// nowait removes the barrier between writing and reading.
// RACE read-write global:items a b
// MAY-MISS shared: each place runs once in a thread
// BUILD O0 O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
#include "race.h"

int items[8];

int main(void) {
#pragma omp parallel num_threads(2)
  {
#pragma omp for schedule(static) nowait
    for (int i = 0; i < 8; i++) {
      *(volatile int*)&items[i] = i;  // [a]
    }
#pragma omp for schedule(static)
    for (int i = 0; i < 8; i++) {
      Use(*(volatile int*)&items[7 - i]);  // [b]
    }
  }
  return Done();
}
