#include "tests/preload/order.h"

#include <algorithm>

namespace trapline::preload {

Order::Order(const std::vector<Report>& reports) {
  std::map<std::uint64_t, Clock> threads;
  std::map<std::uint64_t, std::uint64_t> running;  // thread -> itself, or the task that it runs
  constexpr std::uint64_t kTasks = 1ull << 63;
  std::map<const volatile void*, Clock> objects;
  struct Barrier {
    std::size_t entered = 0;
    std::map<std::uint64_t, std::size_t> round_of;  // by thread
    std::map<std::size_t, Clock> rounds;
  };
  std::map<const volatile void*, Barrier> barriers;
  const auto join = [](Clock& into, const Clock& from) {
    for (const auto& [thread, time] : from) into[thread] = std::max(into[thread], time);
  };
  for (const Report& report : reports) {
    if (report.kind == TRAPLINE_TASK_SWITCH) {
      const auto task = reinterpret_cast<std::uint64_t>(report.address);
      running[report.thread] = task == 0 ? report.thread : kTasks | task;
      continue;
    }
    const std::uint64_t who = running.try_emplace(report.thread, report.thread).first->second;
    Clock& clock = threads[who];
    std::uint64_t& now = clock[who];
    switch (report.kind) {
      case kStepReport:
        ++now;
        steps_.push_back(
            {static_cast<const char*>(const_cast<const void*>(report.address)), who, clock});
        break;
      case TRAPLINE_RELEASE:
      case TRAPLINE_RELEASE_SHARED:
      case TRAPLINE_HAPPENS_BEFORE:
        join(objects[report.address], clock);
        ++now;
        break;
      case TRAPLINE_ACQUIRE:
      case TRAPLINE_ACQUIRE_SHARED:
      case TRAPLINE_HAPPENS_AFTER:
        join(clock, objects[report.address]);
        break;
      // Whoever leaves a barrier late must not see who has entered it again: rounds are told apart
      // by the number of threads that wait.
      case TRAPLINE_BARRIER_ENTER: {
        Barrier& barrier = barriers[report.address];
        const std::size_t round = report.size == 0 ? 0 : barrier.entered++ / report.size;
        barrier.round_of[who] = round;
        join(barrier.rounds[round], clock);
        ++now;
        break;
      }
      case TRAPLINE_BARRIER_LEAVE: {
        Barrier& barrier = barriers[report.address];
        join(clock, barrier.rounds[barrier.round_of[who]]);
        break;
      }
      case TRAPLINE_JOIN:
        join(clock, threads[reinterpret_cast<std::uint64_t>(report.address)]);
        break;
      case TRAPLINE_SYNC_DESTROYED:
        objects.erase(report.address);
        barriers.erase(report.address);
        break;
      default:
        break;
    }
  }
}

bool Order::HappensBefore(const Occurrence& a, const Occurrence& b) {
  const auto known = b.clock.find(a.thread);
  return known != b.clock.end() && known->second >= a.clock.at(a.thread);
}

bool Order::Before(const std::string& first, const std::string& second) const {
  bool any = false;
  for (const Occurrence& a : steps_)
    for (const Occurrence& b : steps_) {
      if (a.name != first || b.name != second || &a == &b) continue;
      any = true;
      if (!HappensBefore(a, b)) return false;
    }
  return any;
}

bool Order::SomeUnordered(const std::string& first, const std::string& second) const {
  for (const Occurrence& a : steps_)
    for (const Occurrence& b : steps_)
      if (a.name == first && b.name == second && a.thread != b.thread && !HappensBefore(a, b) &&
          !HappensBefore(b, a))
        return true;
  return false;
}

std::size_t Order::Count(const std::string& name) const {
  return static_cast<std::size_t>(std::count_if(
      steps_.begin(), steps_.end(), [&](const Occurrence& step) { return step.name == name; }));
}

}  // namespace trapline::preload
