// Constructs whose reductions tasks take part in have the value, and order all threads, when they
// end.
// CLEAN
// BUILD O0 O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
#include "race.h"

enum { kThreads = 3, kElements = 24 };
static int sum, parts, tasks;
static int own[kThreads];

int main(void) {
  int wrong = 0;
#pragma omp parallel num_threads(kThreads) reduction(+ : wrong)
  {
#pragma omp for reduction(task, + : sum)
    for (int i = 0; i < kElements; i++) sum++;
    wrong += sum != kElements;
#pragma omp sections reduction(task, + : parts)
    {
#pragma omp section
      parts += 1;
#pragma omp section
      parts += 2;
    }
    wrong += parts != 3;
#pragma omp for schedule(static, 1)
    for (int i = 0; i < kThreads; i++) own[i] = i;
#pragma omp for reduction(task, + : tasks)
    for (int i = 0; i < kElements; i++) {
#pragma omp task in_reduction(+ : tasks)
      tasks++;
    }
    wrong += tasks != kElements;
    for (int i = 0; i < kThreads; i++) wrong += own[i] != i;
  }
  return wrong == 0 ? Done() : 1;
}
