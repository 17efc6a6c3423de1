// Coroutines that change threads at each step of a pool's queue.
// CLEAN
#include <condition_variable>
#include <coroutine>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "race.h"

class Pool {
 public:
  void Add(std::coroutine_handle<> handle) {
    std::lock_guard guard(mutex_);
    queue_.push_back(handle);
    condition_.notify_one();
  }
  void Run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      condition_.wait(lock, [&] { return !queue_.empty() || stopped_; });
      if (queue_.empty()) return;
      auto handle = queue_.front();
      queue_.pop_front();
      lock.unlock();
      handle.resume();
    }
  }
  void Stop() {
    std::lock_guard guard(mutex_);
    stopped_ = true;
    condition_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  std::deque<std::coroutine_handle<>> queue_;
  bool stopped_ = false;
};

static Pool pool;
static std::mutex mutex;
static int shared, done;

struct Hop {
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<> handle) { pool.Add(handle); }
  void await_resume() {}
};

struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

static Task Work(int number) {
  int mine = number;
  for (int i = 0; i < 10; i++) {
    co_await Hop{};
    mine += i;
    std::lock_guard guard(mutex);
    shared += mine;
  }
  co_await Hop{};
  std::lock_guard guard(mutex);
  if (++done == 4) pool.Stop();
}

int main() {
  for (int i = 0; i < 4; i++) Work(i);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; i++) threads.emplace_back([] { pool.Run(); });
  for (auto& thread : threads) thread.join();
  return Done();
}
