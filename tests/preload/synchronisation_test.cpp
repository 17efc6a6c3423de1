// Every synchronisation primitive, and exactly what the preload library reports of it.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <future>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>

#include "tests/preload/order.h"
#include "tests/preload/recorder.h"

namespace trapline::preload {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

Report Of(std::uint64_t kind, const volatile void* address, std::uint64_t size = 0) {
  return {kind, address, size, NumberOfThisThread(), 0, 0};
}

Report OfOther(std::uint64_t thread, std::uint64_t kind, const volatile void* address,
               std::uint64_t size = 0) {
  return {kind, address, size, thread, 0, 0};
}

Report JoinOf(std::uint64_t number) {
  return Of(TRAPLINE_JOIN, reinterpret_cast<const void*>(number));
}

Report JoinBeginOf(pthread_t thread) {
  return Of(TRAPLINE_JOIN_BEGIN, reinterpret_cast<const void*>(thread));
}

// Reports of who waits for a thread as long as it takes.
auto AreOfJoin(std::uint64_t number) {
  return ElementsAre(Field(&Report::kind, TRAPLINE_JOIN_BEGIN), JoinOf(number));
}

timespec Past() { return {0, 0}; }

timespec Future() {
  timespec deadline = {};
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += 100;
  return deadline;
}

// Runs `body` in a thread created without std::thread and waits for it, unrecorded or not.
template <typename Body>
std::uint64_t InThread(Body body) {
  struct Context {
    Body& body;
    std::uint64_t number = 0;
  } context{body};
  pthread_t thread = 0;
  EXPECT_EQ(pthread_create(
                &thread, nullptr,
                [](void* argument) -> void* {
                  auto* in = static_cast<Context*>(argument);
                  in->number = NumberOfThisThread();
                  in->body();
                  return nullptr;
                },
                &context),
            0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  return context.number;
}

TEST(Mutex, EveryWayToTakeIt) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const timespec future = Future();
  const auto acquire = Of(TRAPLINE_ACQUIRE, &mutex, TRAPLINE_LOCK_MUTEX);
  const auto release = Of(TRAPLINE_RELEASE, &mutex, TRAPLINE_LOCK_MUTEX);
  EXPECT_THAT(Record(What::kSynchronisation,
                     [&] {
                       pthread_mutex_lock(&mutex);
                       pthread_mutex_unlock(&mutex);
                       pthread_mutex_trylock(&mutex);
                       pthread_mutex_unlock(&mutex);
                       pthread_mutex_timedlock(&mutex, &future);
                       pthread_mutex_unlock(&mutex);
                       pthread_mutex_clocklock(&mutex, CLOCK_REALTIME, &future);
                       pthread_mutex_unlock(&mutex);
                       pthread_mutex_destroy(&mutex);
                     }),
              ElementsAre(acquire, release, acquire, release, acquire, release, acquire, release,
                          Of(TRAPLINE_SYNC_DESTROYED, &mutex)));
}

TEST(Mutex, FailedAttemptsAreNotReported) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const timespec past = Past();
  pthread_mutex_lock(&mutex);
  int busy = 0;
  int late = 0;
  int destroy = 0;
  EXPECT_THAT(Record(What::kSynchronisation,
                     [&] {
                       busy = pthread_mutex_trylock(&mutex);
                       late = pthread_mutex_timedlock(&mutex, &past);
                       destroy = pthread_mutex_destroy(&mutex);
                     }),
              IsEmpty());
  EXPECT_EQ(busy, EBUSY);
  EXPECT_EQ(late, ETIMEDOUT);
  EXPECT_EQ(destroy, EBUSY);
  pthread_mutex_unlock(&mutex);
}

TEST(Mutex, RecursiveIsReportedEachTime) {
  std::recursive_mutex mutex;
  EXPECT_THAT(Record(What::kSynchronisation,
                     [&] {
                       mutex.lock();
                       mutex.lock();
                       mutex.unlock();
                       mutex.unlock();
                     }),
              ElementsAre(Of(TRAPLINE_ACQUIRE, &mutex, TRAPLINE_LOCK_MUTEX),
                          Of(TRAPLINE_ACQUIRE, &mutex, TRAPLINE_LOCK_MUTEX),
                          Of(TRAPLINE_RELEASE, &mutex, TRAPLINE_LOCK_MUTEX),
                          Of(TRAPLINE_RELEASE, &mutex, TRAPLINE_LOCK_MUTEX)));
}

TEST(Objects, BeginAndEnd) {
  pthread_mutex_t mutex;
  pthread_rwlock_t lock;
  pthread_barrier_t barrier;
  pthread_cond_t condition;
  EXPECT_THAT(
      Record(What::kSynchronisation,
             [&] {
               pthread_mutex_init(&mutex, nullptr);
               pthread_rwlock_init(&lock, nullptr);
               pthread_barrier_init(&barrier, nullptr, 2);
               pthread_cond_init(&condition, nullptr);
               pthread_cond_destroy(&condition);
               pthread_barrier_destroy(&barrier);
               pthread_rwlock_destroy(&lock);
               pthread_mutex_destroy(&mutex);
             }),
      ElementsAre(Of(TRAPLINE_SYNC_CREATED, &mutex), Of(TRAPLINE_SYNC_CREATED, &lock),
                  Of(TRAPLINE_SYNC_CREATED, &barrier), Of(TRAPLINE_SYNC_CREATED, &condition),
                  Of(TRAPLINE_SYNC_DESTROYED, &condition), Of(TRAPLINE_SYNC_DESTROYED, &barrier),
                  Of(TRAPLINE_SYNC_DESTROYED, &lock), Of(TRAPLINE_SYNC_DESTROYED, &mutex)));
}

TEST(Mutex, ADeadOwnersIsTaken) {
  pthread_mutex_t mutex;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  InThread([&] { pthread_mutex_lock(&mutex); });
  int result = 0;
  EXPECT_THAT(Record(What::kSynchronisation, [&] { result = pthread_mutex_lock(&mutex); }),
              ElementsAre(Of(TRAPLINE_ACQUIRE, &mutex, TRAPLINE_LOCK_MUTEX)));
  EXPECT_EQ(result, EOWNERDEAD);
}

TEST(Rwlock, SidesAreToldApart) {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  const timespec future = Future();
  const auto acquire = Of(TRAPLINE_ACQUIRE, &lock, TRAPLINE_LOCK_RWLOCK);
  const auto release = Of(TRAPLINE_RELEASE, &lock, TRAPLINE_LOCK_RWLOCK);
  const auto acquire_shared = Of(TRAPLINE_ACQUIRE_SHARED, &lock, TRAPLINE_LOCK_RWLOCK);
  const auto release_shared = Of(TRAPLINE_RELEASE_SHARED, &lock, TRAPLINE_LOCK_RWLOCK);
  EXPECT_THAT(Record(What::kSynchronisation,
                     [&] {
                       pthread_rwlock_rdlock(&lock);
                       pthread_rwlock_tryrdlock(&lock);
                       pthread_rwlock_trywrlock(&lock);
                       pthread_rwlock_timedrdlock(&lock, &future);
                       pthread_rwlock_clockrdlock(&lock, CLOCK_REALTIME, &future);
                       for (int i = 0; i < 4; ++i) pthread_rwlock_unlock(&lock);
                     }),
              ElementsAre(acquire_shared, acquire_shared, acquire_shared, acquire_shared,
                          release_shared, release_shared, release_shared, release_shared));
  EXPECT_THAT(Record(What::kSynchronisation,
                     [&] {
                       pthread_rwlock_wrlock(&lock);
                       pthread_rwlock_unlock(&lock);
                       pthread_rwlock_trywrlock(&lock);
                       pthread_rwlock_tryrdlock(&lock);
                       pthread_rwlock_unlock(&lock);
                       pthread_rwlock_timedwrlock(&lock, &future);
                       pthread_rwlock_unlock(&lock);
                       pthread_rwlock_clockwrlock(&lock, CLOCK_REALTIME, &future);
                       pthread_rwlock_unlock(&lock);
                       pthread_rwlock_destroy(&lock);
                     }),
              ElementsAre(acquire, release, acquire, release, acquire, release, acquire, release,
                          Of(TRAPLINE_SYNC_DESTROYED, &lock)));
}

TEST(Rwlock, ManyHeldAtOnce) {
  std::array<std::shared_mutex, 100> locks;
  const auto reports = Record(What::kSynchronisation, [&] {
    for (std::size_t i = 0; i < locks.size(); ++i)
      if (i % 2 == 0)
        locks.at(i).lock();
      else
        locks.at(i).lock_shared();
    for (std::size_t i = 0; i < locks.size(); ++i)
      if (i % 2 == 0)
        locks.at(i).unlock();
      else
        locks.at(i).unlock_shared();
  });
  ASSERT_EQ(reports.size(), 200U);
  for (std::size_t i = 0; i < 200; ++i) {
    const bool exclusive = i % 2 == 0;
    const std::uint64_t kind = i < 100 ? (exclusive ? TRAPLINE_ACQUIRE : TRAPLINE_ACQUIRE_SHARED)
                                       : (exclusive ? TRAPLINE_RELEASE : TRAPLINE_RELEASE_SHARED);
    EXPECT_EQ(reports.at(i), Of(kind, &locks.at(i % 100), TRAPLINE_LOCK_RWLOCK));
  }
}

TEST(Spinlock, TakenAndGivenBack) {
  pthread_spinlock_t lock = 0;
  pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
  EXPECT_THAT(Record(What::kSynchronisation,
                     [&] {
                       pthread_spin_lock(&lock);
                       pthread_spin_trylock(&lock);
                       pthread_spin_unlock(&lock);
                       pthread_spin_trylock(&lock);
                       pthread_spin_unlock(&lock);
                       pthread_spin_destroy(&lock);
                     }),
              ElementsAre(Of(TRAPLINE_ACQUIRE, &lock, TRAPLINE_LOCK_SPINLOCK),
                          Of(TRAPLINE_RELEASE, &lock, TRAPLINE_LOCK_SPINLOCK),
                          Of(TRAPLINE_ACQUIRE, &lock, TRAPLINE_LOCK_SPINLOCK),
                          Of(TRAPLINE_RELEASE, &lock, TRAPLINE_LOCK_SPINLOCK),
                          Of(TRAPLINE_SYNC_DESTROYED, &lock)));
}

TEST(Barrier, AllEnterBeforeAnyLeaves) {
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, 3);
  const auto reports = RecordFromAnywhere(What::kSynchronisation, [&] {
    std::thread first([&] { pthread_barrier_wait(&barrier); });
    std::thread second([&] { pthread_barrier_wait(&barrier); });
    pthread_barrier_wait(&barrier);
    pthread_barrier_destroy(&barrier);
    first.join();
    second.join();
  });
  std::vector<std::uint64_t> kinds;
  for (const Report& report : reports)
    if (report.address == &barrier) {
      kinds.push_back(report.kind);
      EXPECT_EQ(report.size, report.kind == TRAPLINE_SYNC_DESTROYED ? 0U : 3U);
    }
  ASSERT_EQ(kinds.size(), 7U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(kinds.at(i), TRAPLINE_BARRIER_ENTER);
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), TRAPLINE_BARRIER_LEAVE), 3);
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), TRAPLINE_SYNC_DESTROYED), 1);
}

TEST(ConditionVariable, GivesTheMutexBackWhileItWaits) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  const timespec past = Past();
  const auto acquire = Of(TRAPLINE_ACQUIRE, &mutex, TRAPLINE_LOCK_MUTEX);
  const auto release = Of(TRAPLINE_RELEASE, &mutex, TRAPLINE_LOCK_MUTEX);
  int timed = 0;
  int clocked = 0;
  EXPECT_THAT(
      Record(What::kSynchronisation,
             [&] {
               pthread_mutex_lock(&mutex);
               timed = pthread_cond_timedwait(&condition, &mutex, &past);
               clocked = pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &past);
               pthread_cond_signal(&condition);
               pthread_cond_broadcast(&condition);
               pthread_mutex_unlock(&mutex);
             }),
      ElementsAre(acquire, release, acquire, release, acquire, Of(TRAPLINE_SYNC_USED, &condition),
                  Of(TRAPLINE_SYNC_USED, &condition), release));
  EXPECT_EQ(timed, ETIMEDOUT);
  EXPECT_EQ(clocked, ETIMEDOUT);
}

TEST(ConditionVariable, CxxWaitHoldsTheMutexAfterwards) {
  std::mutex mutex;
  std::condition_variable condition;
  bool go = false;
  std::uint64_t waiter = 0;
  const auto reports = RecordFromAnywhere(What::kSynchronisation, [&] {
    std::thread thread([&] {
      waiter = NumberOfThisThread();
      std::unique_lock lock(mutex);
      condition.wait(lock, [&] { return go; });
    });
    {
      std::lock_guard lock(mutex);
      go = true;
    }
    condition.notify_all();
    thread.join();
  });
  // However often it waits, it takes and gives back in turn, and ends without the mutex.
  const auto of_waiter = OfThread(reports, waiter);
  ASSERT_GE(of_waiter.size(), 2U);
  ASSERT_EQ(of_waiter.size() % 2, 0U);
  for (std::size_t i = 0; i < of_waiter.size(); ++i)
    EXPECT_EQ(of_waiter.at(i), OfOther(waiter, i % 2 == 0 ? TRAPLINE_ACQUIRE : TRAPLINE_RELEASE,
                                       &mutex, TRAPLINE_LOCK_MUTEX));
}

TEST(ConditionVariable, ACancelledWaitHoldsTheMutexInItsHandlers) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  struct Context {
    pthread_mutex_t* mutex;
    pthread_cond_t* condition;
    std::atomic<bool> waiting = false;
    std::uint64_t number = 0;
  } context{&mutex, &condition};
  void* result = nullptr;
  const auto reports = RecordFromAnywhere(What::kSynchronisation, [&] {
    pthread_t thread = 0;
    pthread_create(
        &thread, nullptr,
        [](void* argument) -> void* {
          auto* in = static_cast<Context*>(argument);
          in->number = NumberOfThisThread();
          pthread_mutex_lock(in->mutex);
          pthread_cleanup_push(
              [](void* locked) { pthread_mutex_unlock(static_cast<pthread_mutex_t*>(locked)); },
              in->mutex);
          in->waiting = true;
          for (;;) pthread_cond_wait(in->condition, in->mutex);
          pthread_cleanup_pop(0);
          return nullptr;
        },
        &context);
    while (!context.waiting) std::this_thread::yield();
    pthread_cancel(thread);
    pthread_join(thread, &result);
  });
  EXPECT_EQ(result, PTHREAD_CANCELED);
  const auto acquire = OfOther(context.number, TRAPLINE_ACQUIRE, &mutex, TRAPLINE_LOCK_MUTEX);
  const auto release = OfOther(context.number, TRAPLINE_RELEASE, &mutex, TRAPLINE_LOCK_MUTEX);
  EXPECT_THAT(About(reports, &mutex), ElementsAre(acquire, release, acquire, release));
  EXPECT_THAT(OfThread(reports, NumberOfThisThread()), AreOfJoin(context.number));
}

TEST(Semaphore, PostHappensBeforeWait) {
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  const timespec future = Future();
  const timespec past = Past();
  const auto before = Of(TRAPLINE_HAPPENS_BEFORE, &semaphore);
  const auto after = Of(TRAPLINE_HAPPENS_AFTER, &semaphore);
  EXPECT_THAT(Record(What::kSynchronisation,
                     [&] {
                       sem_trywait(&semaphore);
                       sem_timedwait(&semaphore, &past);
                       for (int i = 0; i < 4; ++i) sem_post(&semaphore);
                       sem_wait(&semaphore);
                       sem_trywait(&semaphore);
                       sem_timedwait(&semaphore, &future);
                       sem_clockwait(&semaphore, CLOCK_REALTIME, &future);
                       sem_destroy(&semaphore);
                     }),
              ElementsAre(before, before, before, before, after, after, after, after,
                          Of(TRAPLINE_SYNC_DESTROYED, &semaphore)));
}

TEST(Once, TheInitialiserHappensBeforeEveryReturn) {
  static pthread_once_t control = PTHREAD_ONCE_INIT;
  static int runs = 0;
  const auto call = [] { pthread_once(&control, [] { ++runs; }); };
  const auto before = Of(TRAPLINE_HAPPENS_BEFORE, &control);
  const auto after = Of(TRAPLINE_HAPPENS_AFTER, &control);
  // Named and taken up from an attempt that failed; initialised; returned.
  EXPECT_THAT(Record(What::kSynchronisation, call), ElementsAre(before, after, before, after));
  EXPECT_THAT(Record(What::kSynchronisation, call), ElementsAre(after));
  EXPECT_EQ(runs, 1);
}

TEST(Once, Nested) {
  static pthread_once_t outer = PTHREAD_ONCE_INIT;
  static once_flag inner = ONCE_FLAG_INIT;
  static int runs = 0;
  const auto reports = Record(What::kSynchronisation, [] {
    pthread_once(&outer, [] {
      call_once(&inner, [] { ++runs; });
      ++runs;
    });
  });
  const auto before_inner = Of(TRAPLINE_HAPPENS_BEFORE, &inner);
  const auto after_inner = Of(TRAPLINE_HAPPENS_AFTER, &inner);
  const auto before_outer = Of(TRAPLINE_HAPPENS_BEFORE, &outer);
  const auto after_outer = Of(TRAPLINE_HAPPENS_AFTER, &outer);
  EXPECT_THAT(reports, ElementsAre(before_outer, after_outer, before_inner, after_inner,
                                   before_inner, after_inner, before_outer, after_outer));
  EXPECT_EQ(runs, 2);
}

TEST(Once, AnExceptionLeavesItUndone) {
  static std::once_flag flag;
  int attempts = 0;
  const auto attempt = [&] {
    try {
      std::call_once(flag, [&] {
        if (++attempts == 1) throw std::runtime_error("not yet");
      });
    } catch (const std::runtime_error&) {
    }
  };
  const auto before = Of(TRAPLINE_HAPPENS_BEFORE, &flag);
  const auto after = Of(TRAPLINE_HAPPENS_AFTER, &flag);
  // Neither initialised nor returned: what was done until it threw comes before the next attempt.
  EXPECT_THAT(About(RecordFromAnywhere(What::kSynchronisation, attempt), &flag),
              ElementsAre(before, after, before));
  EXPECT_THAT(Record(What::kSynchronisation, attempt), ElementsAre(before, after, before, after));
  EXPECT_EQ(attempts, 2);
}

int Initial() { return static_cast<int>(NumberOfThisThread()); }

TEST(StaticLocal, TheGuardIsAReleaseStore) {
  const auto use = [] {
    static const int value = Initial();
    return value;
  };
  const auto synchronisation = Record(What::kSynchronisation, [&] { use(); });
  ASSERT_EQ(synchronisation.size(), 2U);
  EXPECT_EQ(synchronisation.at(0).kind, TRAPLINE_HAPPENS_AFTER);  // attempts that failed
  EXPECT_EQ(synchronisation.at(1).kind, TRAPLINE_HAPPENS_BEFORE);
  // The compiler's code sees that it is done and does not call again.
  EXPECT_THAT(Record(What::kSynchronisation, [&] { use(); }), IsEmpty());

  const auto other = [] {
    static const int value = Initial();
    return value;
  };
  const auto accesses = Record(What::kAccesses, [&] { other(); });
  ASSERT_EQ(accesses.size(), 1U);
  EXPECT_EQ(accesses.at(0).kind, TRAPLINE_ATOMIC_WRITE);
  EXPECT_EQ(accesses.at(0).size, 1U);
}

TEST(StaticLocal, AnAttemptThatThrowsIsGivenBack) {
  bool throws = true;
  const auto attempt = [&] {
    try {
      static const int value = throws ? throw std::runtime_error("not yet") : Initial();
      return value;
    } catch (const std::runtime_error&) {
      return 0;
    }
  };
  const auto reports = RecordFromAnywhere(What::kSynchronisation, [&] { attempt(); });
  std::vector<std::uint64_t> kinds;
  kinds.reserve(reports.size());
  ASSERT_FALSE(reports.empty());
  // The library that unwinds initialises something, too.
  const volatile void* const guard = reports.back().address;
  for (const Report& report : reports) {
    if (report.address == guard) kinds.push_back(report.kind);
  }
  EXPECT_THAT(kinds, ElementsAre(TRAPLINE_HAPPENS_AFTER, TRAPLINE_HAPPENS_BEFORE));
}

TEST(StaticLocal, WhoWaitsForTheInitialisationIsAfterIt) {
  static std::atomic<bool> started;
  static std::atomic<bool> waiting;
  static std::uint64_t waiter;
  started = waiting = false;
  const auto use = [] {
    static const int value = [] {
      started = true;
      while (!waiting) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return 1;
    }();
    return value;
  };
  const auto reports = RecordFromAnywhere(What::kSynchronisation, [&] {
    std::thread other([&] {
      waiter = NumberOfThisThread();
      while (!started) std::this_thread::yield();
      waiting = true;
      use();
    });
    use();
    other.join();
  });
  std::vector<std::uint64_t> kinds;
  kinds.reserve(reports.size());
  for (const Report& report : reports) {
    if (report.kind != TRAPLINE_JOIN_BEGIN) kinds.push_back(report.kind);
  }
  EXPECT_THAT(kinds, ElementsAre(TRAPLINE_HAPPENS_AFTER, TRAPLINE_HAPPENS_BEFORE,
                                 TRAPLINE_HAPPENS_AFTER, TRAPLINE_JOIN));
  EXPECT_EQ(OfThread(reports, waiter).size(), 1U);
}

TEST(Threads, JoinNamesTheThread) {
  std::uint64_t number = 0;
  const auto reports = Record(What::kSynchronisation, [&] { number = InThread([] {}); });
  EXPECT_THAT(reports, AreOfJoin(number));
  EXPECT_NE(number, NumberOfThisThread());
}

TEST(Threads, CxxJoinNamesTheThread) {
  std::uint64_t number = 0;
  const auto reports = RecordFromAnywhere(What::kSynchronisation, [&] {
    std::thread thread([&] { number = NumberOfThisThread(); });
    thread.join();
  });
  EXPECT_THAT(reports, AreOfJoin(number));
}

TEST(Threads, JoinBeforeTheThreadRan) {
  // Each name is used over and over: a stale entry would give a wrong number.
  for (int i = 0; i < 2000; ++i) {
    std::uint64_t number = 0;
    const auto reports = Record(What::kSynchronisation, [&] { number = InThread([] {}); });
    ASSERT_THAT(reports, AreOfJoin(number));
  }
}

TEST(Threads, ConcurrentJoinsNameTheirThreads) {
  // Threads create, join and detach at the same time, so that names wander between them.
  const auto reports = RecordFromAnywhere(What::kSynchronisation, [] {
    std::array<std::thread, 4> churners;
    for (std::thread& churner : churners)
      churner = std::thread([] {
        const auto number = [](void*) -> void* {
          return reinterpret_cast<void*>(NumberOfThisThread());
        };
        for (int i = 0; i < 1000; ++i) {
          pthread_t thread = 0;
          void* joined = nullptr;
          const auto create = [&] {
            const int error = pthread_create(&thread, nullptr, number, nullptr);
            EXPECT_EQ(error, 0);  // else there is nobody to join
            return error == 0;
          };
          if (!create()) continue;
          pthread_join(thread, &joined);
          Step(static_cast<const char*>(joined));  // the report before it must be of this join
          if (i % 7 == 0 && create()) pthread_detach(thread);
        }
      });
    for (std::thread& churner : churners) churner.join();
  });
  std::map<std::uint64_t, const volatile void*> joined;  // last, by thread
  int steps = 0;
  for (const Report& report : reports)
    if (report.kind == TRAPLINE_JOIN) {
      joined[report.thread] = report.address;
    } else if (report.kind == kStepReport) {
      ++steps;
      EXPECT_EQ(report.address, joined[report.thread]);
    }
  EXPECT_EQ(steps, 4000);
}

TEST(Threads, NamesOfDetachedThreadsAreUsedAgain) {
  for (int i = 0; i < 200; ++i) {
    static std::atomic<int> running = 0;
    running = 3;
    const auto end = [](void*) -> void* {
      --running;
      return nullptr;
    };
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread = 0;
    const auto of_detached = Record(What::kSynchronisation, [&] {
      pthread_create(&thread, &attributes, end, nullptr);
      pthread_create(&thread, nullptr, end, nullptr);
      pthread_detach(thread);
      pthread_create(
          &thread, nullptr,
          [](void*) -> void* {
            pthread_detach(pthread_self());
            --running;
            return nullptr;
          },
          nullptr);
    });
    EXPECT_THAT(of_detached, IsEmpty());
    while (running != 0) std::this_thread::yield();
    std::uint64_t number = 0;
    const auto reports = Record(What::kSynchronisation, [&] { number = InThread([] {}); });
    ASSERT_THAT(reports, AreOfJoin(number));
  }
}

TEST(Threads, EveryWayToJoin) {
  for (int way = 0; way < 4; ++way) {
    static std::atomic<bool> go;
    static std::uint64_t number;
    go = false;
    pthread_t thread = 0;
    ASSERT_EQ(pthread_create(
                  &thread, nullptr,
                  [](void* argument) -> void* {
                    number = NumberOfThisThread();
                    while (!go) std::this_thread::yield();
                    pthread_exit(argument);
                  },
                  &go),
              0);
    const timespec past = Past();
    const timespec future = Future();
    void* value = nullptr;
    int early = 0;
    const auto join = [&](const timespec* deadline) {
      if (way == 0) return pthread_tryjoin_np(thread, &value);
      if (way == 1) return pthread_timedjoin_np(thread, &value, deadline);
      if (way == 2) return pthread_clockjoin_np(thread, &value, CLOCK_REALTIME, deadline);
      return deadline == &past ? EBUSY : pthread_join(thread, &value);
    };
    EXPECT_THAT(Record(What::kSynchronisation, [&] { early = join(&past); }), IsEmpty());
    EXPECT_EQ(early, way == 0 || way == 3 ? EBUSY : ETIMEDOUT);
    go = true;
    const auto reports = RecordFromAnywhere(What::kSynchronisation, [&] {
      while (join(&future) == EBUSY) std::this_thread::yield();
    });
    // Of a wait that may give up nothing is said before.
    const auto mine = OfThread(reports, NumberOfThisThread());
    if (way == 3) {
      EXPECT_THAT(mine, ElementsAre(JoinBeginOf(thread), JoinOf(number)));
    } else {
      EXPECT_THAT(mine, ElementsAre(JoinOf(number)));
    }
    EXPECT_EQ(value, &go);
  }
}

TEST(Threads, ManyAtOnce) {
  constexpr int kThreads = 300;
  static std::array<std::uint64_t, kThreads> numbers;
  std::array<pthread_t, kThreads> threads = {};
  const auto reports = Record(What::kSynchronisation, [&] {
    for (int i = 0; i < kThreads; ++i)
      pthread_create(
          &threads.at(static_cast<std::size_t>(i)), nullptr,
          [](void* argument) -> void* {
            *static_cast<std::uint64_t*>(argument) = NumberOfThisThread();
            return nullptr;
          },
          &numbers.at(static_cast<std::size_t>(i)));
    for (pthread_t thread : threads) pthread_join(thread, nullptr);
  });
  ASSERT_EQ(reports.size(), 2 * numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(reports.at(2 * i), JoinBeginOf(threads.at(i)));
    EXPECT_EQ(reports.at(2 * i + 1), JoinOf(numbers.at(i)));
  }
}

TEST(Threads, TheInitialThreadCanBeWaitedFor) {
  // Claimed and given back: a timed wait for it fails here, as it is still running.
  static int result;
  static pthread_t initial;
  initial = pthread_self();
  const timespec past = Past();
  InThread([&] { result = pthread_timedjoin_np(initial, nullptr, &past); });
  EXPECT_EQ(result, ETIMEDOUT);
}

TEST(Threads, ACancelledJoinLeavesTheThreadToOthers) {
  static std::atomic<bool> go;
  static std::atomic<bool> joining;
  static pthread_t target;
  static std::uint64_t number;
  go = joining = false;
  pthread_create(
      &target, nullptr,
      [](void*) -> void* {
        number = NumberOfThisThread();
        while (!go) std::this_thread::yield();
        return nullptr;
      },
      nullptr);
  pthread_t joiner = 0;
  pthread_create(
      &joiner, nullptr,
      [](void*) -> void* {
        joining = true;
        pthread_join(target, nullptr);
        return nullptr;
      },
      nullptr);
  while (!joining) std::this_thread::yield();
  pthread_cancel(joiner);
  void* result = nullptr;
  pthread_join(joiner, &result);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  go = true;
  const auto reports = Record(What::kSynchronisation, [&] { pthread_join(target, nullptr); });
  EXPECT_THAT(reports, AreOfJoin(number));
}

TEST(Threads, TheirOwnNamesAreReported) {
  const auto reports =
      Record(What::kAnnotations, [] { pthread_setname_np(pthread_self(), "a name"); });
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports.at(0).kind, TRAPLINE_THREAD_NAME);
  EXPECT_STREQ(static_cast<const char*>(const_cast<const void*>(reports.at(0).address)), "a name");
}

TEST(C11, Threads) {
  static std::uint64_t number;
  thrd_t thread = 0;
  int value = 0;
  const auto reports = Record(What::kSynchronisation, [&] {
    thrd_create(
        &thread,
        [](void*) {
          number = NumberOfThisThread();
          return 7;
        },
        nullptr);
    thrd_join(thread, &value);
  });
  EXPECT_THAT(reports, AreOfJoin(number));
  EXPECT_EQ(value, 7);
}

TEST(C11, MutexAndCondition) {
  mtx_t mutex;
  cnd_t condition;
  const timespec past = Past();
  const timespec future = Future();
  mtx_init(&mutex, mtx_timed);
  cnd_init(&condition);
  const auto acquire = Of(TRAPLINE_ACQUIRE, &mutex, TRAPLINE_LOCK_MUTEX);
  const auto release = Of(TRAPLINE_RELEASE, &mutex, TRAPLINE_LOCK_MUTEX);
  EXPECT_THAT(Record(What::kSynchronisation,
                     [&] {
                       mtx_lock(&mutex);
                       mtx_trylock(&mutex);
                       cnd_timedwait(&condition, &mutex, &past);
                       mtx_unlock(&mutex);
                       mtx_trylock(&mutex);
                       mtx_unlock(&mutex);
                       mtx_timedlock(&mutex, &future);
                       mtx_unlock(&mutex);
                       mtx_destroy(&mutex);
                     }),
              ElementsAre(acquire, release, acquire, release, acquire, release, acquire, release,
                          Of(TRAPLINE_SYNC_DESTROYED, &mutex)));
}

TEST(C11, ConditionWait) {
  static mtx_t mutex;
  static cnd_t condition;
  static bool go;
  static std::uint64_t number;
  mtx_init(&mutex, mtx_plain);
  cnd_init(&condition);
  thrd_t thread = 0;
  const auto reports = Record(What::kSynchronisation, [&] {
    thrd_create(
        &thread,
        [](void*) {
          number = NumberOfThisThread();
          mtx_lock(&mutex);
          while (!go) cnd_wait(&condition, &mutex);
          mtx_unlock(&mutex);
          return 0;
        },
        nullptr);
    mtx_lock(&mutex);
    go = true;
    cnd_signal(&condition);
    mtx_unlock(&mutex);
    thrd_join(thread, nullptr);
  });
  const auto of_waiter = OfThread(reports, number);
  ASSERT_GE(of_waiter.size(), 2U);
  for (std::size_t i = 0; i < of_waiter.size(); ++i)
    EXPECT_EQ(of_waiter.at(i).kind, i % 2 == 0 ? TRAPLINE_ACQUIRE : TRAPLINE_RELEASE);
}

TEST(Stream, LocksOrderTheirHolders) {
  EXPECT_THAT(Record(What::kSynchronisation,
                     [] {
                       flockfile(stdout);
                       ftrylockfile(stdout);
                       funlockfile(stdout);
                       funlockfile(stdout);
                     }),
              ElementsAre(Of(TRAPLINE_ACQUIRE, stdout, TRAPLINE_LOCK_MUTEX),
                          Of(TRAPLINE_ACQUIRE, stdout, TRAPLINE_LOCK_MUTEX),
                          Of(TRAPLINE_RELEASE, stdout, TRAPLINE_LOCK_MUTEX),
                          Of(TRAPLINE_RELEASE, stdout, TRAPLINE_LOCK_MUTEX)));
}

TEST(Cxx, TimedMutexes) {
  std::timed_mutex mutex;
  std::shared_timed_mutex shared;
  EXPECT_THAT(Record(What::kSynchronisation,
                     [&] {
                       if (mutex.try_lock_for(std::chrono::seconds(10))) mutex.unlock();
                       if (shared.try_lock_for(std::chrono::seconds(10))) shared.unlock();
                       if (shared.try_lock_shared_for(std::chrono::seconds(10)))
                         shared.unlock_shared();
                     }),
              ElementsAre(Of(TRAPLINE_ACQUIRE, &mutex, TRAPLINE_LOCK_MUTEX),
                          Of(TRAPLINE_RELEASE, &mutex, TRAPLINE_LOCK_MUTEX),
                          Of(TRAPLINE_ACQUIRE, &shared, TRAPLINE_LOCK_RWLOCK),
                          Of(TRAPLINE_RELEASE, &shared, TRAPLINE_LOCK_RWLOCK),
                          Of(TRAPLINE_ACQUIRE_SHARED, &shared, TRAPLINE_LOCK_RWLOCK),
                          Of(TRAPLINE_RELEASE_SHARED, &shared, TRAPLINE_LOCK_RWLOCK)));
}

TEST(Cxx, ATimedWaitGivesTheMutexBack) {
  std::mutex mutex;
  std::condition_variable condition;
  EXPECT_THAT(Record(What::kSynchronisation,
                     [&] {
                       std::unique_lock lock(mutex);
                       condition.wait_for(lock, std::chrono::milliseconds(1));
                     }),
              ElementsAre(Of(TRAPLINE_ACQUIRE, &mutex, TRAPLINE_LOCK_MUTEX),
                          Of(TRAPLINE_RELEASE, &mutex, TRAPLINE_LOCK_MUTEX),
                          Of(TRAPLINE_ACQUIRE, &mutex, TRAPLINE_LOCK_MUTEX),
                          Of(TRAPLINE_RELEASE, &mutex, TRAPLINE_LOCK_MUTEX)));
}

TEST(Cxx, AnAsyncTaskIsJoined) {
  std::uint64_t number = 0;
  const auto reports = RecordFromAnywhere(What::kSynchronisation, [&] {
    auto result = std::async(std::launch::async, [&] { number = NumberOfThisThread(); });
    result.get();
  });
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(std::count(reports.begin(), reports.end(), JoinOf(number)), 1);
}

template <class Function>
void* AddressOf(Function* function) {
  return reinterpret_cast<void*>(function);
}

TEST(LookUp, FindsWhatStandsInFront) {
  void* const libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  ASSERT_NE(libc, nullptr);
  Record(What::kSynchronisation, [&] {
    EXPECT_EQ(dlsym(libc, "pthread_mutex_trylock"), AddressOf(pthread_mutex_trylock));
    EXPECT_EQ(dlsym(libc, "qsort"), AddressOf(qsort));
    EXPECT_NE(dlsym(libc, "pthread_barrier_wait"), AddressOf(pthread_barrier_wait));
    EXPECT_NE(dlsym(libc, "pthread_barrier_wait"), nullptr);
    EXPECT_EQ(dlsym(libc, "no such function"), nullptr);
    EXPECT_NE(dlerror(), nullptr);
    // The next one of whoever asks.
    EXPECT_EQ(dlsym(RTLD_NEXT, "pthread_mutex_trylock"), AddressOf(pthread_mutex_trylock));
    EXPECT_EQ(dlsym(RTLD_DEFAULT, "pthread_mutex_trylock"), AddressOf(pthread_mutex_trylock));
    EXPECT_EQ(dlsym(RTLD_DEFAULT, "qsort"), AddressOf(qsort));
  });
  dlclose(libc);
}

}  // namespace
}  // namespace trapline::preload
