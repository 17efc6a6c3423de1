// Two tasks race that one thread runs with many others between them; and a dependence that orders
// the others.
// RACE write-write global:count first last
// BUILD O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
#include "one_thread.h"

static int count, chain;

static void Run(void) {
#pragma omp task
  count = 1;  // [first]
  for (int i = 0; i < 20; i++) {
#pragma omp task depend(inout : chain)
    chain++;
  }
#pragma omp task
  count = 2;  // [last]
#pragma omp taskwait
}

int main(void) {
  RunTasksInOneThread(Run);
  Use(count);
  return chain == 20 ? Done() : 1;
}
