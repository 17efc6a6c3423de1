// The mutexes of oneTBB, most of which are inlined into the program; queuing_mutex_clean has the
// one that is missing.
// CLEAN
// SECONDS 90
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD gcc-O0 gcc-O0-nodebug O2 gcc-O2-nodebug clang-O2-nodebug
#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/rw_mutex.h>
#include <tbb/null_mutex.h>
#include <tbb/parallel_for.h>
#include <tbb/queuing_rw_mutex.h>
#include <tbb/spin_mutex.h>
#include <tbb/spin_rw_mutex.h>

#include "tbb_race.h"

template <class Mutex>
static void CountLocked() {
  Mutex mutex;
  long count = 0;
  tbb::parallel_for(0, 200, [&](int) {
    const typename Mutex::scoped_lock lock(mutex);
    ++count;
  });
  Check(count == 200);
}

template <class Mutex>
static void ReadAndWrite() {
  Mutex mutex;
  long count = 0;
  tbb::parallel_for(0, 200, [&](int i) {
    typename Mutex::scoped_lock lock(mutex, i % 5 == 0);
    if (i % 5 == 0) {
      ++count;
    } else {
      Check(count <= 80);
      if (i % 5 == 1) {
        lock.upgrade_to_writer();
        ++count;
        lock.downgrade_to_reader();
        Check(count > 0);
      }
    }
  });
  Check(count == 80);
}

int main() {
  InArena([] {
    CountLocked<tbb::spin_mutex>();
    CountLocked<tbb::speculative_spin_mutex>();
    CountLocked<tbb::mutex>();
    ReadAndWrite<tbb::spin_rw_mutex>();
    ReadAndWrite<tbb::queuing_rw_mutex>();
    ReadAndWrite<tbb::rw_mutex>();
  });
  return Done();
}
