#include "hypervisor/idle_drain.h"

#include <sched.h>
#include <sys/prctl.h>

#include <chrono>

#include "hypervisor/clock.h"
#include "hypervisor/signals.h"

namespace trapline {
namespace {

constexpr std::size_t kStackSize = 256 * 1024;  // as that of the program's threads, who drain, too
// Between looks at queues in which there was not enough, in nanoseconds; each one twice as long as
// the one before. To fill a queue takes some 5 ms and more, a look 10 to 20 us.
constexpr std::uint64_t kShortestPause = 1'000'000, kLongestPause = 8'000'000;

// Where the program may run, as whoever started it said: it may bind its threads to some of these.
struct Processors {
  Processors() {
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) count = static_cast<unsigned>(CPU_COUNT(&set));
  }
  cpu_set_t set;
  unsigned count = 0;  // 0: not known
};
const Processors processors;

}  // namespace

bool IdleDrain::HasIdleProcessor() const { return running() < processors.count; }

void IdleDrain::Stop() {
  if (!thread_) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    wake_.notify_one();
  }
  pthread_join(*thread_, nullptr);
  thread_.reset();
  ends_ = sleeps_ = false;
}

void IdleDrain::SetThreads(unsigned threads) {
  threads_.store(threads, std::memory_order_relaxed);
  if (threads > 1 && !thread_) Start();
}

void IdleDrain::OnWait() {
  waiting_.fetch_add(1, std::memory_order_relaxed);
  if (HasIdleProcessor()) Wake();
}

void IdleDrain::Wake() {
  if (!sleeps_ || Nanoseconds(CLOCK_MONOTONIC) < not_before_) return;
  const std::lock_guard lock(mutex_);
  sleeps_ = false;
  wake_.notify_one();
}

void IdleDrain::Start() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackSize);
  if (processors.count != 0)
    pthread_attr_setaffinity_np(&attributes, sizeof processors.set, &processors.set);
  pthread_t thread{};
  const auto run = [](void* self) -> void* {
    static_cast<IdleDrain*>(self)->Run();
    return nullptr;
  };
  if (pthread_create(&thread, &attributes, run, this) == 0) thread_ = thread;
  pthread_attr_destroy(&attributes);
}

void IdleDrain::Run() {
  SetHostMask(kAllSignals);              // pthread_create leaves out one of them
  prctl(PR_SET_NAME, "trapline-drain");  // or it would seem to be one of the program's
  std::unique_lock lock(mutex_);
  std::uint64_t pause = kShortestPause;
  while (!ends_) {
    const bool idle = HasIdleProcessor();
    if (idle) {
      lock.unlock();
      const bool drained = drain_();
      lock.lock();
      if (drained) {
        pause = kShortestPause;
        continue;
      }
    }
    if (idle && running() != 0 && pause <= kLongestPause) {
      wake_.wait_for(lock, std::chrono::nanoseconds(pause), [this] { return ends_; });
      pause *= 2;
    } else {
      not_before_ = Nanoseconds(CLOCK_MONOTONIC) + kShortestPause;
      sleeps_ = true;
      wake_.wait(lock, [this] { return ends_ || !sleeps_; });
      pause = kShortestPause;
    }
  }
}

}  // namespace trapline
