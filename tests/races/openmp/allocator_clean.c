// OpenMP's own blocks (omp_alloc), handed to another thread in a critical section and given back
// there: their memory comes back to the first one.
// CLEAN
// NEEDS openmp
// FLAGS -fopenmp
// BUILD O0 O2 clang-O2
// TSAN-DIFFERS the libraries are not instrumented
#include <omp.h>

#include "race.h"

static long* queue[64];
static int count, done;

static void Produce(void) {
  for (long i = 0; i < 2000; ++i) {
    long* block = omp_alloc(64, omp_default_mem_alloc);
    block[0] = i;
    for (int queued = 0; !queued;) {
#pragma omp critical
      if (count < 64) {
        queue[count++] = block;
        queued = 1;
      }
    }
  }
#pragma omp critical
  done = 1;
}

static long Consume(void) {
  long sum = 0;
  for (int last = 0; !last;) {
    long* block = 0;
#pragma omp critical
    {
      if (count > 0)
        block = queue[--count];
      else
        last = done;
    }
    if (block == 0) continue;
    sum += block[0];
    block[1] = sum;
    omp_free(block, omp_null_allocator);
  }
  return sum;
}

int main(void) {
  long sum = 0;
#pragma omp parallel num_threads(3) reduction(+ : sum)
  {
    if (omp_get_thread_num() == 0)
      Produce();
    else
      sum += Consume();
  }
  Check(sum == 2000 * 1999 / 2);
  return Done();
}
