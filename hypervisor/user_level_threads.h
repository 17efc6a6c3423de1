// Threads that a language runtime tells of (managed-runtimes.md): user-level threads ("fibers"),
// and tasks. To the observer both are threads, which the program's own threads carry.
//
// Guarded by Tracking's mutex, but for SetThreadNumbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

#include "detector/event.h"
#include "guest-agent/agent.h"
#include "hypervisor/event_batch.h"

namespace trapline {

class UserLevelThreads {
 public:
  // What one thread carries.
  struct Carried {
    std::optional<ThreadId> fiber;        // user-level thread that it runs; none: itself
    std::uint64_t task = 0;               // number of the task that it runs; 0: none
    std::optional<ThreadId> task_thread;  // ... and that task's thread
    bool task_is_of_thread = false;       // Task::is_of_thread

    // Under whose name the events of `thread`, which carries this, count.
    ThreadId Identity(ThreadId thread) const {
      return task_thread ? *task_thread : fiber.value_or(thread);
    }
  };

  // `batch` outlives this.
  explicit UserLevelThreads(EventBatch& batch) : batch_(batch) {}

  // Where their numbers come from; before the program runs.
  void SetThreadNumbers(std::function<std::uint64_t()> next) { next_number_ = std::move(next); }

  // Some existed, and nobody knows whether what they did is ordered before what follows.
  bool existed() const { return existed_; }
  // After a fork: the child's code may go on with them, they get numbers anew.
  void Clear();

  // `thread` has told of a fiber: an event of TRAPLINE_FIBER_CREATE to _NAME. `owns_pages`: not
  // all that threads do is seen.
  void OnFiberEvent(ThreadId thread, Carried& carried, const agent::QueuedEvent& event,
                    bool owns_pages);
  // A TRAPLINE_TASK_SWITCH. [stack_start, stack_end): the thread's stack, 0 if not known.
  void OnTaskSwitch(ThreadId thread, Carried& carried, const agent::QueuedEvent& event,
                    std::uint64_t stack_start, std::uint64_t stack_end);
  // The task that the thread runs, if any, uses what belongs to the thread: it counts as part of
  // it.
  void OnTaskUsesThread(ThreadId thread, Carried& carried);

 private:
  // A task that has begun and not ended. It is a thread of its own, of which there are few
  // (kTaskThreads): one after the other they are many tasks each.
  struct Task {
    ThreadId thread = 0;
    bool borrows = false;       // the thread is that of what its carrier ran before
    bool is_of_thread = false;  // counts as part of its carrier
  };

  // Of the fiber that the runtime calls `key`, as told by `thread` at `ip`.
  ThreadId NumberOf(ThreadId thread, std::uint64_t key, std::uint64_t ip);
  void EndFiber(std::uint64_t key);
  // What `thread` did before counts as `before`, a part of it if `is_of_thread`.
  Task StartTask(ThreadId thread, ThreadId before, bool is_of_thread, std::uint64_t ip);
  void EndTask(std::uint64_t number);

  EventBatch& batch_;
  std::function<std::uint64_t()> next_number_;
  bool existed_ = false;
  std::unordered_map<std::uint64_t, ThreadId> fibers_;  // by the runtime's name for them
  std::unordered_map<std::uint64_t, Task> tasks_;       // by number
  std::deque<ThreadId> idle_task_threads_;              // the longest idle one first
  std::size_t task_threads_ = 0;                        // how many there are
};

}  // namespace trapline
