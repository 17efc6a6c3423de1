// A reduction adds up private copies.
// CLEAN
// BUILD O0 O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
#include "race.h"

int main(void) {
  int sum = 0;
#pragma omp parallel for num_threads(3) reduction(+ : sum)
  for (int i = 0; i < 24; i++) sum += i;
  return sum == 276 ? Done() : 1;
}
