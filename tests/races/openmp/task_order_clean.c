// Tasks in the order of their depend clauses; a taskwait for some of them, a taskgroup, and a loop
// of tasks.
// CLEAN
// BUILD O0 O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
// TAGS fast
#include "race.h"

static int first, second, sum, parts[8];

int main(void) {
#pragma omp parallel num_threads(3)
#pragma omp single
  {
#pragma omp task depend(out : first)
    first = 1;
#pragma omp task depend(in : first) depend(out : second)
    second = first + 1;
#pragma omp taskwait depend(in : second)
    sum = second;
#pragma omp task depend(inout : first)
    first += 2;
#pragma omp taskgroup
    {
#pragma omp task
      {
#pragma omp task
        parts[0] = 1;
      }
    }
    sum += parts[0];
#pragma omp taskloop grainsize(1)
    for (int i = 1; i < 8; i++) parts[i] = sum;
    sum += parts[7];
#pragma omp taskwait
    sum += first;
  }
  return sum == 9 ? Done() : 1;
}
