// Reductions and atomic constructs of floating-point numbers in functions that regions call, of
// what lies within an object.
// CLEAN
// BUILD O0 O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
// TAGS fast
#include "race.h"

enum { kThreads = 3, kRounds = 20, kElements = 24 };

static struct {
  int before;
  double product;
  float sum;
} results;
static float sum;
static int found;

__attribute__((noinline)) static void Add(void) {
#pragma omp for reduction(+ : sum) reduction(|| : found)
  for (int i = 0; i < kElements; i++) {
    sum += (float)i;
    found = found || i == 7;
  }
}

__attribute__((noinline)) static void Change(float number) {
#pragma omp atomic
  results.product *= 2;
#pragma omp atomic
  results.sum += number;
}

int main(void) {
  for (int round = 0; round < kRounds; round++) {
    results.product = 1;
#pragma omp parallel num_threads(kThreads)
    {
      Add();
      Change(1);
    }
    float part = 0;
#pragma omp parallel for num_threads(kThreads) reduction(+ : part)
    for (int i = 0; i < kElements; i++) part += (float)(i * i);
    if (results.product != 1 << kThreads || part != 4324) return 1;
  }
  return found && sum == kRounds * 276 && results.sum == kRounds * kThreads ? Done() : 1;
}
