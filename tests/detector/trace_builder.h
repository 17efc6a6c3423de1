// Short ways to write traces in tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "detector/detector.h"

namespace trapline {

inline Event MakeEvent(EventKind kind, ThreadId thread, std::uint64_t address = 0,
                       std::uint64_t size = 0, std::uint64_t ip = 0) {
  Event event{};
  event.kind = kind;
  event.thread = thread;
  event.address = address;
  event.size = size;
  event.ip = ip;
  return event;
}

inline Event Read(ThreadId t, std::uint64_t address, std::uint64_t size = 8, std::uint64_t ip = 0) {
  return MakeEvent(EventKind::kRead, t, address, size, ip);
}
inline Event Write(ThreadId t, std::uint64_t address, std::uint64_t size = 8,
                   std::uint64_t ip = 0) {
  return MakeEvent(EventKind::kWrite, t, address, size, ip);
}
inline Event Acquire(ThreadId t, std::uint64_t lock) {
  return MakeEvent(EventKind::kAcquire, t, lock);
}
inline Event Release(ThreadId t, std::uint64_t lock) {
  return MakeEvent(EventKind::kRelease, t, lock);
}
inline Event Fork(ThreadId t, ThreadId child) {
  Event event = MakeEvent(EventKind::kFork, t);
  event.other = child;
  return event;
}
inline Event Join(ThreadId t, ThreadId child) {
  Event event = MakeEvent(EventKind::kJoin, t);
  event.other = child;
  return event;
}
inline Event JoinBegin(ThreadId t, ThreadId child) {
  Event event = MakeEvent(EventKind::kJoinBegin, t);
  event.other = child;
  return event;
}
inline Event End(ThreadId t) { return MakeEvent(EventKind::kThreadEnd, t); }
inline Event Clear(ThreadId t, std::uint64_t address, std::uint64_t size) {
  return MakeEvent(EventKind::kClearHistory, t, address, size);
}
inline Event Copy(ThreadId t, std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  Event event = MakeEvent(EventKind::kCopyHistory, t, destination, size);
  event.aux = source;
  return event;
}
inline Event Atomic(EventKind kind, ThreadId t, std::uint64_t address, MemoryOrder order,
                    std::uint64_t size = 8) {
  Event event = MakeEvent(kind, t, address, size);
  event.order = order;
  return event;
}

// Runs a whole trace through a detector that reports all races.
inline std::unique_ptr<Detector> RunOn(std::string_view name, const std::vector<Event>& trace,
                                       DetectorOptions options = {}) {
  options.all_races = true;
  std::unique_ptr<Detector> detector = MakeDetector(name, options);
  detector->OnEvents(trace, 0);
  detector->Finish();
  return detector;
}

}  // namespace trapline
