// What tasks have on the stack of the thread that runs them lies where earlier tasks and their
// creator had theirs; and what they are given, where the runtime had other tasks'.
// CLEAN
// BUILD O0 O2 clang-O0 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
#include "one_thread.h"

struct Large {
  int values[32];
};
static int sums[256];

static int __attribute__((noinline)) Fill(int size, int value) {
  volatile int local[size];
  for (int i = 0; i < size; i++) local[i] = value;
  int sum = 0;
  for (int i = 0; i < size; i++) sum += local[i];
  return sum;
}

// Children of a task write what it has on its stack.
static int __attribute__((noinline)) Share(int value) {
  int local[4];
  for (int i = 0; i < 4; i++) {
#pragma omp task shared(local) firstprivate(i)
    local[i] = value + Fill(i + 1, 0);
  }
#pragma omp taskwait
  return local[0] + local[3];
}

static void Run(void) {
  struct Large large;
  Use(Fill(100, 1));
  // More than the runtimes keep: some are run at once, where they are created.
  for (int i = 0; i < 256; i++) {
    for (int k = 0; k < 32; k++) large.values[k] = i;
#pragma omp task firstprivate(large, i)
    {
      large.values[i % 32]++;
      sums[i] = Fill(i % 7 * 16 + 1, 1) + large.values[i % 31];
    }
    Use(Fill(i % 5 * 32 + 1, 2));
  }
#pragma omp taskwait
  Use(Fill(200, 3));
  for (int i = 0; i < 8; i++) {
#pragma omp task firstprivate(i)
    sums[i] = Share(i);
  }
#pragma omp taskwait
#pragma omp taskloop grainsize(1) firstprivate(large)
  for (int i = 0; i < 64; i++) sums[i] += ++large.values[i % 32] + Fill(i + 1, 1);
  Use(Fill(200, 3));
}

int main(void) {
  RunTasksInOneThread(Run);
  return Done();
}
