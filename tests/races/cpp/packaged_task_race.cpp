// What the thread does after its std::packaged_task is not ordered by the future.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <future>
#include <thread>

#include "race.h"

int value;

int main() {
  std::packaged_task<void()> task([] {});
  std::future<void> result = task.get_future();
  std::thread worker([&task] {
    task();
    value = 1;  // [a]
  });
  result.get();
  value = 2;  // [b]
  worker.join();
  return Done();
}
