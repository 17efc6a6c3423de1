// What a task is given is copied by the program's copy constructor, after the task was created.
// CLEAN
// BUILD O0 O2 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
// TAGS fast
#include "race.h"

struct Value {
  int number = 0;
  Value() = default;
  Value(const Value& other) : number(other.number) { Escape(this); }
  Value& operator=(const Value&) = default;
};
static int sums[8];

int main() {
  Value value;
#pragma omp parallel num_threads(3)
#pragma omp single
  for (int i = 0; i < 8; i++) {
    value.number = i;
#pragma omp task firstprivate(value, i)
    sums[i] = value.number;
  }
  int sum = 0;
  for (const int each : sums) sum += each;
  return sum == 28 ? Done() : 1;
}
