// A detached task: its end is that of its event, fulfilled by another task.
// RACE any global:value a b
// NEEDS openmp
// FLAGS -fopenmp
// MAY-MISS shared: who had the page first did so alone
// BUILD O0 O2 clang-O2
// TSAN-DIFFERS libgomp is not instrumented
#include <omp.h>

#include "race.h"

static int value, seen;

int main(void) {
#pragma omp parallel num_threads(3)
#pragma omp single
  {
    omp_event_handle_t event;
#pragma omp task detach(event) depend(out : value)
    seen = 1;
#pragma omp task
    {
      omp_fulfill_event(event);
      value = 4;  // [a]
    }
#pragma omp task depend(in : value)
    seen += value;  // [b]
#pragma omp taskwait
  }
  return Done();
}
