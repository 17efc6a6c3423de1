// A lock made of std::atomic_flag with wait and notify.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

class Lock {
 public:
  void lock() {
    while (flag_.test_and_set(std::memory_order_acquire))
      flag_.wait(true, std::memory_order_relaxed);
  }
  void unlock() {
    flag_.clear(std::memory_order_release);
    flag_.notify_one();
  }

 private:
  std::atomic_flag flag_;
};

static Lock lock;
int value;

static void Work() {
  for (int i = 0; i < 10; i++) {
    lock.lock();
    value++;
    lock.unlock();
  }
}

int main() {
  std::thread a(Work), b(Work);
  a.join();
  b.join();
  return Done();
}
