// Without debug info: a flag of OpenMP's that is read atomically until it is set. LLVM's compilers
// call the run-time library for the fence.
// CLEAN
// NEEDS openmp
// FLAGS -fopenmp
// BUILD O0 gcc-O2-nodebug clang-O2-nodebug
// TSAN-DIFFERS the libraries are not instrumented
#include <omp.h>

#include "race.h"

static int data, flag, seen;

int main(void) {
#pragma omp parallel num_threads(2)
  if (omp_get_thread_num() == 0) {
    usleep(1000);
    data = 42;
#pragma omp atomic write release
    flag = 1;
  } else {
    int is_set = 0;
    while (!is_set) {
#pragma omp atomic read acquire
      is_set = flag;
    }
    seen = data;
  }
  Check(seen == 42);
  return Done();
}
