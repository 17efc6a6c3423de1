// Iterations that wait for those before them, in a nest of more loops than there are registers for.
// CLEAN
// BUILD O0 O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
// TAGS fast
#include "race.h"

enum { kRounds = 20 };

#define LOOP(variable) for (int variable = 4; variable < 5; variable++)
#define EIGHT(x) \
  LOOP(x##0) LOOP(x##1) LOOP(x##2) LOOP(x##3) LOOP(x##4) LOOP(x##5) LOOP(x##6) LOOP(x##7)
#define NAMES(x) x##0, x##1, x##2, x##3, x##4, x##5, x##6, x##7

int main(void) {
  int value = 0;
#pragma omp parallel num_threads(3)
  {
#pragma omp for ordered(17) schedule(static, 1)
    for (int i = 0; i < kRounds; i++) EIGHT(j) EIGHT(k) {
#pragma omp ordered depend(sink : i - 1, NAMES(j), NAMES(k))
        value++;
#pragma omp ordered depend(source)
      }
  }
  return value == kRounds ? Done() : 1;
}
