// Queues hand objects over; bounded ones block.
// CLEAN
// SECONDS 90
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD gcc-O0 gcc-O0-nodebug O2 gcc-O2-nodebug clang-O2-nodebug
#include <tbb/concurrent_priority_queue.h>
#include <tbb/concurrent_queue.h>
#include <tbb/parallel_for.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "tbb_race.h"

int main() {
  tbb::concurrent_queue<std::unique_ptr<int>> queue;
  tbb::concurrent_priority_queue<std::shared_ptr<int>> priorities;
  tbb::concurrent_bounded_queue<std::string> bounded;
  bounded.set_capacity(4);
  std::atomic<long> sum = 0;
  InArena([&] {
    tbb::parallel_for(0, 200, [&](int i) {
      queue.push(std::make_unique<int>(i));
      priorities.push(std::make_shared<int>(i));
      if (std::unique_ptr<int> got; queue.try_pop(got)) sum += (*got)++;
      if (std::shared_ptr<int> got; priorities.try_pop(got)) sum += (*got)++;
    });
  });
  std::thread producer([&] {
    for (int i = 0; i < 100; ++i) bounded.push(std::to_string(i));
  });
  std::thread consumer([&] {
    for (int i = 0; i < 100; ++i) {
      std::string text;
      bounded.pop(text);
      sum += std::stol(text);
    }
  });
  producer.join();
  consumer.join();
  for (std::unique_ptr<int> got; queue.try_pop(got);) sum += *got;
  for (std::shared_ptr<int> got; priorities.try_pop(got);) sum += *got;
  Check(sum == 2 * 19900 + 4950);
  return Done();
}
