// The threads of a parallel loop have iterations of their own.
// CLEAN
// BUILD O0 O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
#include "race.h"

int items[24];

int main(void) {
#pragma omp parallel for num_threads(3)
  for (int i = 0; i < 24; i++) items[i] = i;
  int sum = 0;
  for (int i = 0; i < 24; i++) sum += items[i];
  return sum == 276 ? Done() : 1;
}
