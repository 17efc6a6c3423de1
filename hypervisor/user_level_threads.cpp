#include "hypervisor/user_level_threads.h"

#include <algorithm>
#include <cstring>

#include "hypervisor/observer.h"

namespace trapline {
namespace {

// How many threads tasks are given, and so how far apart two of them are always told from each
// other. Clocks, and lists of readers, are as long.
constexpr std::size_t kTaskThreads = 32;

}  // namespace

void UserLevelThreads::Clear() {
  existed_ = false;
  fibers_.clear();
  tasks_.clear();
  idle_task_threads_.clear();
  task_threads_ = 0;
}

ThreadId UserLevelThreads::NumberOf(ThreadId thread, std::uint64_t key, std::uint64_t ip) {
  if (key == 0) return thread;
  if ((key & TRAPLINE_FIBER_OF_THREAD) == TRAPLINE_FIBER_OF_THREAD)
    return static_cast<ThreadId>(key & ~TRAPLINE_FIBER_OF_THREAD);
  const auto [fiber, is_new] = fibers_.try_emplace(key, 0);
  if (is_new) {
    fiber->second = static_cast<ThreadId>(next_number_());
    batch_.Observer().OnFiberStart(thread, fiber->second, ip);
    existed_ = true;
  }
  return fiber->second;
}

void UserLevelThreads::EndFiber(std::uint64_t key) {
  const auto fiber = fibers_.find(key);
  if (fiber == fibers_.end()) return;
  batch_.Observer().OnFiberEnd(fiber->second);
  fibers_.erase(fiber);
}

void UserLevelThreads::OnFiberEvent(ThreadId thread, Carried& carried,
                                    const agent::QueuedEvent& event, bool owns_pages) {
  switch (event.kind) {
    case TRAPLINE_FIBER_CREATE:
      EndFiber(event.address);  // a name used again
      NumberOf(thread, event.address, event.ip);
      break;
    case TRAPLINE_FIBER_SWITCH: {
      const ThreadId fiber = NumberOf(thread, event.address, event.ip);
      // Nobody saw what it released on its carrier's private pages (FormerOwners).
      if (owns_pages) batch_.AddEdge(thread, EventKind::kHappensBefore, kCarrierKeys | thread);
      constexpr std::uint64_t kBelow = 1024;  // what the switch itself may push
      constexpr std::uint64_t kWord = 8;      // bytes
      const std::uint64_t stack = event.size >> 16;
      batch_.Observer().OnFiberSwitch(thread, fiber, (event.size & 1) != 0,
                                      stack > kBelow ? stack - kBelow : 0,
                                      stack + (event.size >> 1 & 0x7fff) * kWord);
      carried.fiber = fiber == thread ? std::nullopt : std::optional<ThreadId>(fiber);
      carried.task = 0;
      carried.task_thread.reset();
      break;
    }
    case TRAPLINE_FIBER_DESTROY:
      EndFiber(event.address);
      break;
    default: {
      char name[17] = {};
      std::memcpy(name, &event.size, 8);
      std::memcpy(name + 8, &event.ip, 8);
      batch_.Observer().OnFiberName(NumberOf(thread, event.address, 0), name);
      break;
    }
  }
}

UserLevelThreads::Task UserLevelThreads::StartTask(ThreadId thread, ThreadId before,
                                                   bool is_of_thread, std::uint64_t ip) {
  Task started;
  if (task_threads_ < kTaskThreads) {
    started.thread = static_cast<ThreadId>(next_number_());
    ++task_threads_;
    existed_ = true;
  } else if (!idle_task_threads_.empty()) {
    started.thread = idle_task_threads_.front();
    idle_task_threads_.pop_front();
  } else {
    started.thread = before;
    started.borrows = true;
    started.is_of_thread = is_of_thread;
  }
  if (!started.borrows) batch_.Observer().OnTaskStart(thread, started.thread, ip);
  return started;
}

void UserLevelThreads::EndTask(std::uint64_t number) {
  const auto ended = tasks_.find(number);
  if (ended == tasks_.end()) return;
  if (!ended->second.borrows) idle_task_threads_.push_back(ended->second.thread);
  tasks_.erase(ended);
}

// A task's stack is what its thread had not yet used, and goes back to it: neither has a past.
void UserLevelThreads::OnTaskSwitch(ThreadId thread, Carried& carried,
                                    const agent::QueuedEvent& event, std::uint64_t stack_start,
                                    std::uint64_t stack_end) {
  const bool begins = (event.size & 1) != 0;
  const ThreadId before = carried.Identity(thread);
  const bool left_is_of_thread = carried.task_thread && carried.task_is_of_thread;
  auto task = tasks_.end();
  if (begins) {
    const Task started = StartTask(thread, before, left_is_of_thread, event.ip);
    task = tasks_.insert_or_assign(event.address, started).first;
  } else {
    EndTask(event.ip);
    task = tasks_.find(event.address);  // unknown: tracking was not active when it began
  }
  // What the thread has done in whatever name, for those who use what belongs to it.
  batch_.AddEdge(thread, EventKind::kHappensBefore, kCarrierKeys | thread);
  carried.task = 0;
  carried.task_thread.reset();
  carried.task_is_of_thread = false;
  if (task != tasks_.end()) {
    carried.task = task->first;
    carried.task_thread = task->second.thread;
    carried.task_is_of_thread = task->second.is_of_thread;
  }
  const ThreadId now = carried.Identity(thread);
  if (now == before) return;
  batch_.Observer().OnFiberSwitch(thread, now, false, 0, 0);
  if (left_is_of_thread || carried.task_is_of_thread)
    batch_.AddEdge(thread, EventKind::kHappensAfter, kCarrierKeys | thread);
  constexpr std::uint64_t kMostStack = 8 << 20;
  const std::uint64_t end = event.size >> 1;
  std::uint64_t start = end > kMostStack ? end - kMostStack : 0;
  if (end <= stack_end) start = std::max(start, stack_start);
  batch_.Observer().OnHistoryEnds(thread, start, end);
}

void UserLevelThreads::OnTaskUsesThread(ThreadId thread, Carried& carried) {
  if (!carried.task_thread || carried.task_is_of_thread) return;
  carried.task_is_of_thread = true;
  if (const auto task = tasks_.find(carried.task); task != tasks_.end())
    task->second.is_of_thread = true;
  batch_.AddEdge(thread, EventKind::kHappensAfter, kCarrierKeys | thread);
}

}  // namespace trapline
