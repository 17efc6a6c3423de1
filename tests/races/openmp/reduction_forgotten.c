// All threads add to the one sum.
// RACE any global:sum a a
// MAY-MISS shared: the places may run one after the other
// BUILD O0 O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
#include "race.h"

volatile int sum;

int main(void) {
#pragma omp parallel for num_threads(3)
  for (int i = 0; i < 24; i++) {
    sum += i;  // [a]
  }
  return Done();
}
