// Two tasks of the same parent write the same variable, and one thread runs both.
// RACE write-write global:count first second
// BUILD O0 O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
// TAGS fast
#include "one_thread.h"

static int count;

static void Run(void) {
#pragma omp task
  count = 1;  // [first]
#pragma omp task
  count = 2;  // [second]
#pragma omp taskwait
}

int main(void) {
  RunTasksInOneThread(Run);
  Use(count);
  return Done();
}
