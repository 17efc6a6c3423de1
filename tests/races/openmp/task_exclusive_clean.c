// Tasks that exclude one another by mutexinoutset, in any order.
// CLEAN
// NEEDS openmp
// FLAGS -fopenmp
// BUILD O0 O2 clang-O2
// TSAN-DIFFERS libgomp is not instrumented
#include "race.h"

static int sum, first;

int main(void) {
#pragma omp parallel num_threads(3)
#pragma omp single
  {
#pragma omp task depend(out : sum) shared(sum)
    sum = 1;
    for (int i = 0; i < 6; i++) {
#pragma omp task depend(mutexinoutset : sum) shared(sum)
      sum += 2;
    }
#pragma omp task depend(in : sum) shared(sum, first)
    first = sum;
  }
  Check(sum == 13 && first == 13);
  return Done();
}
