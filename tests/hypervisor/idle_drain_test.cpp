// When queues are drained on a processor that would be idle.
#include "hypervisor/idle_drain.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace trapline {
namespace {

using std::chrono::milliseconds;

// Whether it becomes true within ten seconds.
template <class Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 10'000 && !condition(); ++i) std::this_thread::sleep_for(milliseconds(1));
  return condition();
}

// A drain that finds enough in the queues as long as `full` says so.
struct Drained {
  std::atomic<bool> full{false};
  std::atomic<int> looks{0}, drains{0};

  std::function<bool()> Function() {
    return [this] {
      ++looks;
      if (!full) return false;
      std::this_thread::sleep_for(milliseconds(1));
      ++drains;
      return true;
    };
  }
};

unsigned Processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return static_cast<unsigned>(CPU_COUNT(&set));
}

// So many threads use all processors, also if there is only one.
const unsigned kThreads = Processors() + 1;

// All of them but for as many as there are processors wait, and one more.
void Wait(IdleDrain& drain) {
  drain.OnWait();
  drain.OnWait();
}
void EndWait(IdleDrain& drain) {
  drain.OnWaitEnds();
  drain.OnWaitEnds();
}

TEST(IdleDrain, DrainsWhileAThreadWaits) {
  Drained drained;
  IdleDrain drain(drained.Function());
  drain.SetThreads(kThreads);
  for (int round = 0; round < 3; ++round) {
    drained.full = true;
    const int before = drained.drains;
    Wait(drain);
    EXPECT_TRUE(Eventually([&] {
      drain.OnFull();
      return drained.drains > before + 3;
    }));
    EndWait(drain);
    drained.full = false;
  }
}

// Queues fill again while others still wait, and nobody says so.
TEST(IdleDrain, LooksAgainAndAgain) {
  Drained drained;
  IdleDrain drain(drained.Function());
  drain.SetThreads(kThreads);
  Wait(drain);
  ASSERT_TRUE(Eventually([&] {
    drain.OnFull();
    return drained.looks > 1;
  }));
  drained.full = true;
  EXPECT_TRUE(Eventually([&] { return drained.drains > 0; }));
  EndWait(drain);
}

TEST(IdleDrain, DoesNotDrainWhileAllRun) {
  Drained drained;
  drained.full = true;
  IdleDrain drain(drained.Function());
  drain.SetThreads(kThreads);
  for (int i = 0; i < 20; ++i) {
    drain.OnFull();
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(drained.drains, 0);
}

// The drain under way is the last one.
TEST(IdleDrain, StopsWhenAllRunAgain) {
  Drained drained;
  drained.full = true;
  IdleDrain drain(drained.Function());
  drain.SetThreads(kThreads);
  std::this_thread::sleep_for(milliseconds(2));
  Wait(drain);
  ASSERT_TRUE(Eventually([&] {
    drain.OnFull();
    return drained.drains > 0;
  }));
  EndWait(drain);
  std::this_thread::sleep_for(milliseconds(100));
  const int drains = drained.drains;
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(drained.drains, drains);
}

TEST(IdleDrain, NeedsTwoThreads) {
  Drained drained;
  drained.full = true;
  IdleDrain drain(drained.Function());
  drain.SetThreads(1);
  drain.OnWait();
  drain.OnFull();
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(drained.looks, 0);
  drain.OnWaitEnds();
}

// While it sleeps for good, while it looks from time to time, and before it has run at all.
TEST(IdleDrain, EndsAtAnyTime) {
  for (int i = 0; i < 30; ++i) {
    Drained drained;
    IdleDrain drain(drained.Function());
    drain.SetThreads(kThreads);
    if (i % 3 != 0) Wait(drain);
    if (i % 2 != 0) std::this_thread::sleep_for(milliseconds(2));
    if (i % 3 == 2) EndWait(drain);
  }
}

TEST(IdleDrain, StartsAgainAfterAStop) {
  Drained drained;
  IdleDrain drain(drained.Function());
  for (int i = 0; i < 2; ++i) {
    drain.SetThreads(kThreads);
    Wait(drain);
    const int looks = drained.looks;
    EXPECT_TRUE(Eventually([&] {
      drain.OnFull();
      return drained.looks > looks;
    }));
    EndWait(drain);
    drain.SetThreads(1);
    drain.Stop();
  }
}

}  // namespace
}  // namespace trapline
