// One update is in the critical section, the other is not.
// ONE-OF any global:counter a b
// ONE-OF any global:counter b b
// MAY-MISS shared: each place runs once in a thread
// BUILD O0 O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
#include "race.h"

volatile int counter;

int main(void) {
#pragma omp parallel num_threads(2)
  {
#pragma omp critical
    counter++;  // [a]
    counter++;  // [b]
  }
  return Done();
}
