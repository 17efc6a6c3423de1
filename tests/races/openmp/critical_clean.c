// A critical section, an atomic update, and a single region with its barrier.
// CLEAN
// BUILD O0 O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
#include "race.h"

int counter;
int atomic_counter;
int prepared;

int main(void) {
#pragma omp parallel num_threads(3)
  {
#pragma omp single
    prepared = 1;
#pragma omp critical
    counter += prepared;
#pragma omp atomic
    atomic_counter++;
  }
  return counter + atomic_counter == 6 ? Done() : 1;
}
