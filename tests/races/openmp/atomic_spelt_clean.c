// `omp atomic read` and `write`, which are plain moves, in all spellings: by the operator _Pragma,
// on several lines, and in a macro.
// CLEAN
// NEEDS openmp
// FLAGS -fopenmp -Wno-unused-but-set-parameter
// BUILD O0 O2 clang-O2
// TSAN-DIFFERS libgomp is not instrumented
#include "race.h"

// clang-format off
#define ATOMICALLY(statement)   \
  do {                          \
    _Pragma("omp atomic write") \
    statement;                  \
  } while (0)

static int values[3];

static int Read(void) {
  int a, b, c;
#pragma omp atomic \
    read
  a = values[0];
  _Pragma("omp atomic read")
  b = values[1];
  _Pragma("omp atomic read") c = values[2];
  return a + b + c;
}

static void Write(int value) {
#pragma omp \
    atomic write
  values[0] = value;
  _Pragma("omp atomic write")
  values[1] = value;
  ATOMICALLY(values[2] = value);
}
// clang-format on

int main(void) {
#pragma omp parallel num_threads(3)
  for (int i = 0; i < 50; i++) {
    Write(1);
    if (Read() > 3) abort();
  }
  return Done();
}
