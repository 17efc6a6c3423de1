// Tasks that exclude one another by mutexinoutset, in any order.
// RACE any global:sum a a
// ALSO any a b
// NEEDS openmp
// FLAGS -fopenmp
// MAY-MISS shared: who had the page first did so alone
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
#pragma omp task depend(in : sum) shared(sum)
      sum += 2;  // [a]
    }
#pragma omp task depend(in : sum) shared(sum, first)
    first = sum;  // [b]
  }
  return Done();
}
