// Drains the threads' queues on a processor that would be idle. Otherwise whoever still runs would
// do it alone, later, while the others wait for it at a barrier.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace trapline {

// A thread of the monitor's own, made once the program has two. In a forked child it is not there:
// the object is then of no use, and cannot be destroyed. Thread-safe but for SetThreads and Stop.
class IdleDrain {
 public:
  // `drain`: called by that thread, with nothing held; drains the queues if there is enough in
  // them, and returns whether there was. It is not called again at once if there was not.
  explicit IdleDrain(std::function<bool()> drain) : drain_(std::move(drain)) {}
  ~IdleDrain() { Stop(); }
  IdleDrain(const IdleDrain&) = delete;
  IdleDrain& operator=(const IdleDrain&) = delete;

  // How many threads the program has. The caller, where these are two or more, has all signals
  // blocked. Where there cannot be one more, as the user's threads are limited, the queues are
  // drained as if no processor were ever idle.
  void SetThreads(unsigned threads);
  // Until SetThreads the thread is gone. The program has one, the caller, with no locks held.
  void Stop();
  // One of the program's threads is about to make a system call in which it may wait.
  void OnWait();
  // It is back.
  void OnWaitEnds() { waiting_.fetch_sub(1, std::memory_order_relaxed); }
  // One of them has filled its queue.
  void OnFull() {
    if (HasIdleProcessor()) Wake();
  }

 private:
  unsigned running() const {
    const unsigned threads = threads_.load(std::memory_order_relaxed);
    return threads - std::min(threads, waiting_.load(std::memory_order_relaxed));
  }
  bool HasIdleProcessor() const;
  void Wake();
  void Start();
  void Run();

  const std::function<bool()> drain_;
  std::atomic<unsigned> threads_{0}, waiting_{0};
  std::atomic<bool> sleeps_{false};           // until Wake
  std::atomic<std::uint64_t> not_before_{0};  // Wake does nothing; ns of CLOCK_MONOTONIC
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::optional<pthread_t> thread_;
};

}  // namespace trapline
