// A detached task: its end is that of its event, fulfilled by another task.
// CLEAN
// NEEDS openmp
// FLAGS -fopenmp
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
      value = 4;
      omp_fulfill_event(event);
    }
#pragma omp task depend(in : value)
    seen += value;
#pragma omp taskwait
  }
  Check(seen == 5);
  return Done();
}
