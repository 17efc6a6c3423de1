// Ordered sections, dependences between the iterations of a loop, critical sections, locks, and all
// ways of reducing.
// CLEAN
// BUILD O0 O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
// TAGS fast
#include <omp.h>

#include "race.h"

static int steps[8], count, named, locked;

int main(void) {
  omp_lock_t lock;
  omp_init_lock(&lock);
  int sum = 0;
  double product = 1;
#pragma omp parallel num_threads(3)
  {
#pragma omp for ordered schedule(static, 1) reduction(+ : sum) reduction(* : product)
    for (int i = 0; i < 8; i++) {
      sum += i;
      product *= 1;
#pragma omp ordered
      count++;
    }
#pragma omp for ordered(1) schedule(static, 1)
    for (int i = 1; i < 8; i++) {
#pragma omp ordered depend(sink : i - 1)
      steps[i] = steps[i - 1] + 1;
#pragma omp ordered depend(source)
    }
#pragma omp critical(name)
    named++;
    omp_set_lock(&lock);
    locked++;
    omp_unset_lock(&lock);
  }
  omp_destroy_lock(&lock);
  Check(sum == 28 && product == 1 && count == 8 && steps[7] == 7 && named == 3 && locked == 3);
  return Done();
}
