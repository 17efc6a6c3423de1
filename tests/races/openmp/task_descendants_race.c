// A taskwait waits for children, not for their children: tasks, all run by one thread.
// RACE read-write global:count grandchild after
// BUILD O0 O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
#include "one_thread.h"

static int count;

static void Run(void) {
#pragma omp task
  {
#pragma omp task
    count = 1;  // [grandchild]
  }
#pragma omp taskwait
  Use(count);  // [after]
}

int main(void) {
  RunTasksInOneThread(Run);
  return Done();
}
