// A team of two of which one thread runs all tasks: the other is kept busy, by asking the kernel,
// until they are done. Time passes, but nothing is ordered.
#ifndef TRAPLINE_TESTS_RACES_OPENMP_ONE_THREAD_H_
#define TRAPLINE_TESTS_RACES_OPENMP_ONE_THREAD_H_

#include <omp.h>
#include <sys/resource.h>

#include "../race.h"

// `run` creates tasks and waits for them, in the initial thread.
__attribute__((unused)) static void RunTasksInOneThread(void (*run)(void)) {
  const int before = getpriority(PRIO_PROCESS, 0);
  Check(before < 19);
#pragma omp parallel num_threads(2)
  {
    if (ThreadId() == getpid()) {
      run();
      Check(setpriority(PRIO_PROCESS, 0, before + 1) == 0);
    } else {
      while (getpriority(PRIO_PROCESS, (id_t)getpid()) == before) usleep(1000);
    }
  }
}

#endif  // TRAPLINE_TESTS_RACES_OPENMP_ONE_THREAD_H_
