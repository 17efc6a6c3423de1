// Tasks use what belongs to the thread that runs them, which no two tasks do at once: its
// threadprivate and thread-local variables, a place by its number, its part of a reduction.
// CLEAN
// BUILD O0 O2 clang-O0 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
#include "one_thread.h"

static int counted;
#pragma omp threadprivate(counted)
static thread_local int* own;
static int by_number[8];
static int sums[3], total;

static void Run() {
  counted = 0;
  by_number[omp_get_thread_num()] = 0;
  for (int i = 0; i < 40; i++) {
#pragma omp task
    counted++;
#pragma omp task
    {
      if (own == nullptr) own = new int(0);
      ++*own;
    }
#pragma omp task
    by_number[omp_get_thread_num()]++;
  }
#pragma omp taskwait
  sums[0] = counted;
  sums[1] = *own;
  sums[2] = by_number[omp_get_thread_num()];
  by_number[omp_get_thread_num()]++;
#pragma omp taskgroup task_reduction(+ : total)
  {
    for (int i = 0; i < 40; i++) {
#pragma omp task in_reduction(+ : total)
      total += i;
    }
  }
}

int main() {
  RunTasksInOneThread(Run);
  return sums[0] == 40 && sums[1] == 40 && sums[2] == 40 && total == 780 ? Done() : 1;
}
