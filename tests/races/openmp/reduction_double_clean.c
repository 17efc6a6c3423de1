// A reduction of floating-point numbers, and an atomic construct, are loops around compare and
// exchange, which begin with a plain load. The sum is set anew for each of them.
// CLEAN
// BUILD O0 O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
// TAGS fast
#include "race.h"

static double product;

int main(void) {
  double all = 0;
  for (int round = 0; round < 20; round++) {
    double sum = 0;
    product = 1;
#pragma omp parallel for num_threads(3) schedule(dynamic) reduction(+ : sum)
    for (int i = 0; i < 24; i++) {
      sum += i;
      if (i % 8 == 0) {
#pragma omp atomic
        product *= 2;
      }
    }
    all += sum + product;
  }
  return all == 20 * (276 + 8) ? Done() : 1;
}
