// Tasks made after a barrier at which earlier ones ran are not ordered by it, although some may end
// before the last thread has left it.
// ONE-OF any global:counter a a
// MAY-MISS shared: the place runs once in a thread
// BUILD O0 O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
#include "race.h"

static int slots[8];
static volatile int counter;

int main(void) {
#pragma omp parallel num_threads(3)
  {
#pragma omp single nowait
    for (int i = 0; i < 8; ++i) {
#pragma omp task firstprivate(i)
      slots[i]++;
    }
#pragma omp barrier
#pragma omp task
    {
      usleep(2000);  // on one busy processor, too, not one thread runs all of them
      counter++;     // [a]
    }
  }
  return Done();
}
