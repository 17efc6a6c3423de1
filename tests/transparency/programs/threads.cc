// Threads of the C++ library: atomics, mutexes, condition variables, futures, thread-local data,
// many short lives.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

thread_local int local = 5;

int main() {
  std::atomic<long> atomic_sum{0};
  long locked_sum = 0;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      local += i;
      for (int k = 0; k < 20000; ++k) {
        atomic_sum.fetch_add(i);
        if (k % 10 == 0) {
          std::lock_guard<std::mutex> guard(mutex);
          locked_sum += local;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("sum %ld %ld %d\n", atomic_sum.load(), locked_sum, local);

  std::condition_variable changed;
  int turn = 0;
  std::thread ping([&] {
    for (int i = 0; i < 500; ++i) {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return turn % 2 == 0; });
      ++turn;
      changed.notify_one();
    }
  });
  for (int i = 0; i < 500; ++i) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return turn % 2 == 1; });
    ++turn;
    changed.notify_one();
  }
  ping.join();
  std::printf("turns %d\n", turn);

  long total = 0;
  for (int i = 0; i < 300; ++i)
    total += std::async(std::launch::async, [i] { return long{i}; }).get();
  std::printf("futures %ld\n", total);

  std::promise<int> promise;
  std::thread([&promise] { promise.set_value_at_thread_exit(3); }).detach();
  std::printf("detached %d\n", promise.get_future().get());
}
