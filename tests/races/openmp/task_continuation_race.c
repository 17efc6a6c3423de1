// The creator of a task does not wait before it goes on, but runs the task itself when it does
// wait.
// RACE write-write global:count task creator
// BUILD O0 O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
#include "one_thread.h"

static int count;

static void Run(void) {
#pragma omp task
  count = 1;  // [task]
  count = 2;  // [creator]
#pragma omp taskwait
}

int main(void) {
  RunTasksInOneThread(Run);
  Use(count);
  return Done();
}
