// Tasks that one thread runs, ordered by dependences, taskwait, taskgroup, and by not being
// deferred; recursion; untied tasks.
// CLEAN
// BUILD O0 O2 clang-O0 clang-O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
// TAGS fast
#include "one_thread.h"

static int first, second, sum, parts[4], undeferred, last;

static int Fibonacci(int n) {
  if (n < 2) return n;
  int left, right;
#pragma omp task shared(left)
  left = Fibonacci(n - 1);
#pragma omp task shared(right) untied
  right = Fibonacci(n - 2);
#pragma omp taskwait
  return left + right;
}

static void Descend(int depth) {
  undeferred++;
  if (depth > 0) {
#pragma omp task
    Descend(depth - 1);
    undeferred++;
  }
}

static void Run(void) {
#pragma omp task depend(out : first)
  first = 1;
#pragma omp task depend(in : first) depend(out : second)
  second = first + 1;
#pragma omp task depend(inout : first, second)
  first += second;
#pragma omp taskwait
  sum = first;
#pragma omp taskgroup
  {
    for (int i = 0; i < 4; i++) {
#pragma omp task firstprivate(i) untied
      {
#pragma omp task
        parts[i] = i;
      }
    }
  }
  for (int i = 0; i < 4; i++) sum += parts[i];
#pragma omp task if (0)
  undeferred++;
  undeferred++;
  // Its children are not deferred.
#pragma omp task final(1)
  Descend(3);
#pragma omp taskwait
  sum += undeferred;
  sum += Fibonacci(8);
#pragma omp taskloop grainsize(1)
  for (int i = 0; i < 4; i++) parts[i] = sum;
#pragma omp taskloop if (0) grainsize(1)
  for (int i = 0; i < 4; i++) last += parts[i];
#pragma omp task mergeable if (0) shared(last)
  last++;
  last++;
}

int main(void) {
  RunTasksInOneThread(Run);
  return sum == 39 && last == 4 * 39 + 2 ? Done() : 1;
}
