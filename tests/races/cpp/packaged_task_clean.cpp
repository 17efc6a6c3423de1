// std::packaged_task run in a thread, and a std::shared_future read by two.
// CLEAN
#include <future>
#include <thread>

#include "race.h"

int value;

int main() {
  std::packaged_task<int(int)> task([](int add) { return value += add; });
  const std::shared_future<int> result = task.get_future().share();
  std::thread reader([result] { Use(result.get() + value); });
  std::thread worker(std::move(task), 5);
  const int seen = result.get() + value;
  reader.join();
  worker.join();
  return seen == 10 ? Done() : 1;
}
