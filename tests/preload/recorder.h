// A test double of the agent: it records what the preload library reports, in the order of the
// reports.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <vector>

#include "guest-agent/events.h"

namespace trapline::preload {

struct Report {
  std::uint64_t kind = 0;
  const volatile void* address = nullptr;
  std::uint64_t size = 0;
  std::uint64_t thread = 0;  // number, see NumberOfThisThread
  std::uint64_t ip = 0;
  std::uint64_t stack_pointer = 0;  // of accesses only
};

// Reports are equal if they say the same of the same object; where from is looked at apart.
inline bool operator==(const Report& a, const Report& b) {
  return a.kind == b.kind && a.address == b.address && a.size == b.size && a.thread == b.thread;
}
std::ostream& operator<<(std::ostream& out, const Report& report);

// The kind of a report that comes from the test itself, see Step in order.h: `address` is its name.
inline constexpr std::uint64_t kStepReport = 0;

// Threads are numbered in the order in which they first report or ask.
std::uint64_t NumberOfThisThread();

enum class What { kSynchronisation, kAllocation, kAccesses, kAnnotations };

// What `action` and the threads it starts report, of the kinds named by `what`. Each report must
// come from an instruction of this program, else the test fails.
std::vector<Report> Record(What what, const std::function<void()>& action);

// As Record, whatever instruction a report comes from.
std::vector<Report> RecordFromAnywhere(What what, const std::function<void()>& action);

// Whether `address` is in the test program itself, not in a library.
bool IsInThisProgram(std::uint64_t address);

// What the double answers to `tracking`, false at first. The second: for a static variable of a
// test whose reports are made as they are while accesses count.
void SetTracking(bool tracking);
inline bool StartTracking() {
  SetTracking(true);
  return true;
}

// The reports of thread `thread` among `reports`.
std::vector<Report> OfThread(const std::vector<Report>& reports, std::uint64_t thread);

// The reports about `object` among `reports`: libgcc, too, calls pthread_once when it unwinds.
std::vector<Report> About(const std::vector<Report>& reports, const volatile void* object);

}  // namespace trapline::preload
