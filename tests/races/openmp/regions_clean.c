// The barriers at the end of parallel regions; tasks and a wait for them.
// CLEAN
// BUILD O0 O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
#include "race.h"

int items[8];
int sums[8];

int main(void) {
#pragma omp parallel for num_threads(4)
  for (int i = 0; i < 8; i++) items[i] = i;
#pragma omp parallel for num_threads(2)
  for (int i = 0; i < 8; i++) sums[i] = items[7 - i];
  int results[2] = {0, 0};
#pragma omp parallel num_threads(2)
#pragma omp single
  {
#pragma omp task shared(results)
    results[0] = sums[0];
#pragma omp task shared(results)
    results[1] = sums[1];
#pragma omp taskwait
    results[0] += results[1];
  }
  return results[0] == 13 ? Done() : 1;
}
