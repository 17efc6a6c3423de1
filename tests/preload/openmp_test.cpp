// OpenMP programs: which of their steps the reports put in order, and which they do not.
#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "tests/preload/order.h"

extern "C" {
void GOMP_parallel_start(void (*body)(void*), void* data, unsigned threads);
void GOMP_parallel_end();
}

namespace trapline::preload {
namespace {

Order OrderOf(const std::function<void()>& program) {
  return Order(RecordFromAnywhere(What::kSynchronisation, program));
}

TEST(OpenMp, ARegionLiesBetweenWhatComesBeforeAndAfter) {
  for (int i = 0; i < 20; ++i) {
    const Order order = OrderOf([] {
      Step("before");
#pragma omp parallel num_threads(4)
      Step("within");
      Step("after");
    });
    EXPECT_EQ(order.Count("within"), 4U);
    EXPECT_TRUE(order.Before("before", "within"));
    EXPECT_TRUE(order.Before("within", "after"));
    EXPECT_TRUE(order.SomeUnordered("within", "within"));
  }
}

TEST(OpenMp, RegionsNest) {
  omp_set_max_active_levels(2);
  const Order order = OrderOf([] {
#pragma omp parallel num_threads(2)
    {
      const bool first = omp_get_thread_num() == 0;
      if (first) Step("before inner");
#pragma omp parallel num_threads(2)
      if (omp_get_ancestor_thread_num(1) == 0) Step("inner");
      if (first) Step("after inner");
      if (!first) Step("beside");
    }
    Step("after");
  });
  EXPECT_EQ(order.Count("inner"), 2U);
  EXPECT_TRUE(order.Before("before inner", "inner"));
  EXPECT_TRUE(order.Before("inner", "after inner"));
  EXPECT_TRUE(order.Before("inner", "after"));
  EXPECT_TRUE(order.SomeUnordered("beside", "inner"));
}

TEST(OpenMp, ARegionStartedAndEndedByTheOldCalls) {
  const Order order = OrderOf([] {
    const auto body = [](void* name) { Step(static_cast<const char*>(name)); };
    static char name[] = "within";
    Step("before");
    GOMP_parallel_start(body, name, 3);
    body(name);
    GOMP_parallel_end();
    Step("after");
  });
  EXPECT_EQ(order.Count("within"), 3U);
  EXPECT_TRUE(order.Before("before", "within"));
  EXPECT_TRUE(order.Before("within", "after"));
  EXPECT_TRUE(order.SomeUnordered("within", "within"));
}

TEST(OpenMp, Barriers) {
  const Order order = OrderOf([] {
#pragma omp parallel num_threads(4)
    {
      Step("a");
#pragma omp barrier
      Step("b");
#pragma omp barrier
      Step("c");
    }
  });
  EXPECT_TRUE(order.Before("a", "b"));
  EXPECT_TRUE(order.Before("b", "c"));
  EXPECT_TRUE(order.SomeUnordered("b", "b"));
}

TEST(OpenMp, LoopsEndAtABarrierUnlessTheySayNot) {
  for (const bool wait : {true, false}) {
    const Order order = OrderOf([wait] {
#pragma omp parallel num_threads(4)
      if (wait) {
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 8; ++i) Step("in loop");
        Step("behind");
      } else {
#pragma omp for schedule(static) nowait
        for (int i = 0; i < 8; ++i) Step("in loop");
        Step("behind");
      }
    });
    EXPECT_EQ(order.Count("in loop"), 8U);
    EXPECT_EQ(order.Before("in loop", "behind"), wait);
  }
}

TEST(OpenMp, ParallelLoopsOfEverySchedule) {
  const auto loops = {
      +[] {
#pragma omp parallel for num_threads(3) schedule(static, 1)
        for (int i = 0; i < 9; ++i) Step("in loop");
      },
      +[] {
#pragma omp parallel for num_threads(3) schedule(dynamic)
        for (int i = 0; i < 9; ++i) Step("in loop");
      },
      +[] {
#pragma omp parallel for num_threads(3) schedule(monotonic : guided)
        for (int i = 0; i < 9; ++i) Step("in loop");
      },
      +[] {
#pragma omp parallel for num_threads(3) schedule(guided)
        for (int i = 0; i < 9; ++i) Step("in loop");
      },
      +[] {
#pragma omp parallel for num_threads(3) schedule(runtime)
        for (int i = 0; i < 9; ++i) Step("in loop");
      },
      +[] {
#pragma omp parallel for num_threads(3) schedule(monotonic : runtime)
        for (int i = 0; i < 9; ++i) Step("in loop");
      },
      +[] {
#pragma omp parallel sections num_threads(3)
        {
#pragma omp section
          for (int i = 0; i < 4; ++i) Step("in loop");
#pragma omp section
          for (int i = 0; i < 5; ++i) Step("in loop");
        }
      },
  };
  for (const auto loop : loops) {
    const Order order = OrderOf([&] {
      Step("before");
      loop();
      Step("after");
    });
    EXPECT_EQ(order.Count("in loop"), 9U);
    EXPECT_TRUE(order.Before("before", "in loop"));
    EXPECT_TRUE(order.Before("in loop", "after"));
  }
}

TEST(OpenMp, SectionsAndSingle) {
  const Order order = OrderOf([] {
#pragma omp parallel num_threads(3)
    {
#pragma omp sections
      {
#pragma omp section
        Step("section");
#pragma omp section
        Step("section");
      }
      Step("between");
#pragma omp single
      Step("single");
      Step("end");
    }
  });
  EXPECT_TRUE(order.Before("section", "between"));
  EXPECT_TRUE(order.Before("single", "end"));
}

TEST(OpenMp, CopyPrivate) {
  const Order order = OrderOf([] {
#pragma omp parallel num_threads(3)
    {
      int value = 0;
#pragma omp single copyprivate(value)
      {
        Step("given");
        value = 1;
      }
      if (value == 1) Step("taken");
    }
  });
  EXPECT_EQ(order.Count("taken"), 3U);
  EXPECT_TRUE(order.Before("given", "taken"));
}

// Steps under one lock are a chain: for any two of them one comes before the other.
void ExpectChain(const std::function<void(const char*)>& locked) {
  const Order order = OrderOf([&] {
#pragma omp parallel num_threads(4)
    for (int i = 0; i < 5; ++i) locked("locked");
  });
  EXPECT_EQ(order.Count("locked"), 20U);
  EXPECT_FALSE(order.SomeUnordered("locked", "locked"));
}

TEST(OpenMp, CriticalSections) {
  ExpectChain([](const char* name) {
#pragma omp critical
    Step(name);
  });
  ExpectChain([](const char* name) {
#pragma omp critical(named)
    Step(name);
  });
}

TEST(OpenMp, Locks) {
  omp_lock_t lock;
  omp_init_lock(&lock);
  ExpectChain([&](const char* name) {
    omp_set_lock(&lock);
    Step(name);
    omp_unset_lock(&lock);
  });
  ExpectChain([&](const char* name) {
    while (omp_test_lock(&lock) == 0) std::this_thread::yield();
    Step(name);
    omp_unset_lock(&lock);
  });
  omp_destroy_lock(&lock);
  omp_nest_lock_t nested;
  omp_init_nest_lock(&nested);
  ExpectChain([&](const char* name) {
    omp_set_nest_lock(&nested);
    while (omp_test_nest_lock(&nested) == 0) std::this_thread::yield();
    Step(name);
    omp_unset_nest_lock(&nested);
    omp_unset_nest_lock(&nested);
  });
  omp_destroy_nest_lock(&nested);
}

TEST(OpenMp, OrderedLoops) {
  const Order order = OrderOf([] {
#pragma omp parallel for ordered num_threads(3) schedule(dynamic)
    for (int i = 0; i < 12; ++i) {
      Step("free");
#pragma omp ordered
      Step("ordered");
    }
  });
  EXPECT_EQ(order.Count("ordered"), 12U);
  EXPECT_FALSE(order.SomeUnordered("ordered", "ordered"));
}

TEST(OpenMp, DoacrossLoops) {
  static const char* const kNames[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
  const Order order = OrderOf([] {
#pragma omp parallel for ordered(1) num_threads(3) schedule(static, 1)
    for (int i = 0; i < 8; ++i) {
#pragma omp ordered depend(sink : i - 1)
      Step(kNames[i]);
#pragma omp ordered depend(source)
    }
  });
  for (int i = 1; i < 8; ++i) EXPECT_TRUE(order.Before(kNames[i - 1], kNames[i]));
}

TEST(OpenMp, DoacrossInTwoDimensions) {
  std::atomic<int> wrong = 0;
  int done[5][5] = {};
  const Order order = OrderOf([&] {
#pragma omp parallel for ordered(2) num_threads(3) schedule(static, 1)
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 5; ++j) {
#pragma omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)
        if ((i > 0 && done[i - 1][j] == 0) || (j > 0 && done[i][j - 1] == 0)) ++wrong;
        if (i == 0 && j == 0) Step("first");
        if (i == 4 && j == 4) Step("last");
        done[i][j] = 1;
#pragma omp ordered depend(source)
      }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(order.Before("first", "last"));
}

TEST(OpenMp, TasksAndTaskwait) {
  for (int round = 0; round < 20; ++round) {
    const Order order = OrderOf([] {
#pragma omp parallel num_threads(3)
#pragma omp single
      {
        Step("before");
        for (int i = 0; i < 6; ++i) {
#pragma omp task
          {
            Step("task");
            std::this_thread::yield();
          }
        }
#pragma omp taskwait
        Step("after");
      }
    });
    EXPECT_EQ(order.Count("task"), 6U);
    EXPECT_TRUE(order.Before("before", "task"));
    EXPECT_TRUE(order.Before("task", "after"));
  }
}

TEST(OpenMp, ATaskIsNotAfterWhatFollowsItsCreation) {
  // The task runs in the other thread while its creator waits for it to have run.
  static std::atomic<bool> ran;
  ran = false;
  const Order order = OrderOf([] {
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task
      {
        Step("task");
        ran = true;
      }
      Step("beside");
#pragma omp task
      Step("second");
      while (!ran) std::this_thread::yield();
    }
  });
  EXPECT_TRUE(order.SomeUnordered("task", "beside"));
  EXPECT_TRUE(order.Before("beside", "second"));
}

TEST(OpenMp, TasksEndBeforeTheBarrierOrTheRegion) {
  const Order order = OrderOf([] {
#pragma omp parallel num_threads(3)
    {
#pragma omp task
      Step("first");
#pragma omp barrier
      Step("between");
#pragma omp task
      Step("second");
    }
    Step("after");
  });
  EXPECT_EQ(order.Count("first"), 3U);
  EXPECT_TRUE(order.Before("first", "between"));
  EXPECT_TRUE(order.Before("second", "after"));
}

TEST(OpenMp, TaskgroupsWaitForDescendants) {
  const Order order = OrderOf([] {
#pragma omp parallel num_threads(3)
#pragma omp single
    {
#pragma omp taskgroup
      for (int i = 0; i < 3; ++i) {
#pragma omp task
        {
#pragma omp task
          Step("grandchild");
          Step("child");
        }
      }
      Step("after");
    }
  });
  EXPECT_EQ(order.Count("grandchild"), 3U);
  EXPECT_TRUE(order.Before("child", "after"));
  EXPECT_TRUE(order.Before("grandchild", "after"));
}

TEST(OpenMp, Dependences) {
  for (int round = 0; round < 20; ++round) {
    int object = 0;
    const Order order = OrderOf([&] {
#pragma omp parallel num_threads(3)
#pragma omp single
      {
#pragma omp task depend(out : object)
        {
          Step("out");
          object = 1;
        }
        for (int i = 0; i < 3; ++i) {
#pragma omp task depend(in : object)
          Step("in");
        }
#pragma omp task depend(inout : object)
        {
          Step("inout");
          ++object;
        }
#pragma omp task depend(in : object) if (0)
        Step("undeferred");
        Step("after");
      }
    });
    EXPECT_TRUE(order.Before("out", "in"));
    EXPECT_TRUE(order.Before("in", "inout"));
    EXPECT_TRUE(order.Before("inout", "undeferred"));
    EXPECT_TRUE(order.Before("undeferred", "after"));
  }
}

struct Copied {
  explicit Copied(int number) : value(number) {}
  Copied(const Copied& other) : value(other.value + 100) {}
  int value;
};

TEST(OpenMp, TaskDataReachTheTask) {
  // By bytes, by copy construction, aligned, and large.
  struct alignas(64) Wide {
    int value = 7;
    char rest[1000] = {};
  };
  std::atomic<int> good = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
  for (int i = 0; i < 50; ++i) {
    Copied copied(i);
    Wide wide;
    wide.rest[999] = static_cast<char>(i);
#pragma omp task firstprivate(copied, wide, i) if (i % 5 != 0)
    {
      const bool aligned = reinterpret_cast<std::uintptr_t>(&wide) % 64 == 0;
      if (copied.value % 100 == i && wide.rest[999] == i && wide.value == 7 && aligned) ++good;
    }
  }
  EXPECT_EQ(good, 50);
}

TEST(OpenMp, Taskloops) {
  const Order order = OrderOf([] {
#pragma omp parallel num_threads(3)
#pragma omp single
    {
      Step("before");
#pragma omp taskloop grainsize(2)
      for (int i = 0; i < 10; ++i) Step("iteration");
      Step("after");
    }
  });
  EXPECT_EQ(order.Count("iteration"), 10U);
  EXPECT_TRUE(order.Before("before", "iteration"));
  EXPECT_TRUE(order.Before("iteration", "after"));
}

TEST(OpenMp, TaskloopsComputeWhatTheyDidBefore) {
  // Enough tasks for libgomp to run them at once; unsigned bounds; data copied by constructors;
  // reductions.
  std::atomic<long> sum = 0;
  long reduced = 0;
  std::atomic<int> good = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
  {
#pragma omp taskloop grainsize(1)
    for (long i = 0; i < 20000; ++i) sum += i;
#pragma omp taskloop num_tasks(5)
    for (unsigned long long i = 18446744073709551600ULL; i > 18446744073709551500ULL; --i) ++sum;
    Copied copied(3);
#pragma omp taskloop firstprivate(copied) grainsize(1)
    for (int i = 0; i < 10; ++i)
      if (copied.value % 100 == 3) ++good;
#pragma omp taskloop reduction(+ : reduced)
    for (int i = 0; i < 100; ++i) reduced += i;
  }
  EXPECT_EQ(sum, 20000L * 19999 / 2 + 100);
  EXPECT_EQ(good, 10);
  EXPECT_EQ(reduced, 4950);
}

TEST(OpenMp, TaskReductions) {
  int sum = 0;
#pragma omp parallel reduction(task, + : sum) num_threads(3)
  {
#pragma omp single
    for (int i = 0; i < 10; ++i) {
#pragma omp task in_reduction(+ : sum)
      sum += i;
    }
  }
  EXPECT_EQ(sum, 45);
}

TEST(OpenMp, TasksOutsideAnyRegionRunAtOnce) {
  int steps = 0;
#pragma omp task shared(steps)
  ++steps;
#pragma omp taskwait
#pragma omp taskloop shared(steps)
  for (int i = 0; i < 3; ++i) ++steps;
  EXPECT_EQ(steps, 4);
}

}  // namespace
}  // namespace trapline::preload
