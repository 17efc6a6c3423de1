// oneTBB with so many threads, whatever the machine has, and two tasks that meet without being
// ordered.
#ifndef TRAPLINE_TESTS_RACES_TBB_TBB_RACE_H_
#define TRAPLINE_TESTS_RACES_TBB_TBB_RACE_H_

#include <sys/resource.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include "../race.h"

constexpr int kThreads = 4;

// Runs `body` where kThreads threads take part.
template <class Body>
void InArena(const Body& body) {
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, kThreads);
  tbb::task_arena arena(kThreads);
  arena.execute(body);
}

// Tasks 0 and 1 wait for each other, and so run on two threads: each tells the kernel that it is
// there, which is no synchronisation.
inline void Meet(int task) {
  constexpr __rlimit_resource kThere[] = {RLIMIT_CORE, RLIMIT_MSGQUEUE};
  constexpr rlim_t kArrived = 77;
  rlimit limit;
  Check(getrlimit(kThere[task], &limit) == 0);
  limit.rlim_cur = kArrived;
  limit.rlim_max = kArrived;
  Check(setrlimit(kThere[task], &limit) == 0);
  do {
    usleep(1000);
    Check(getrlimit(kThere[1 - task], &limit) == 0);
  } while (limit.rlim_cur != kArrived);
}

#endif  // TRAPLINE_TESTS_RACES_TBB_TBB_RACE_H_
