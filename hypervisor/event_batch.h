// What the observer is told many events at a time (ExecutionObserver::OnCachedAccesses): accesses
// of code in the code cache, and what stands among them.
//
// Guarded by Tracking's mutex, but for has_newly_atomic_code.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "detector/event.h"
#include "hypervisor/address_space.h"
#include "hypervisor/observer.h"

namespace trapline {

class EventBatch {
 public:
  explicit EventBatch(ExecutionObserver& observer) : observer_(observer) {}

  // The observer, who then knows of all accesses up to now.
  ExecutionObserver& Observer() {
    if (!events_.empty()) Tell();
    return observer_;
  }

  // The next event, to be filled in; the reference is good until the next call of any member.
  Event& Add() { return events_.emplace_back(); }
  // Synchronisation the monitor saw itself (files, thread ends).
  void AddEdge(ThreadId thread, EventKind kind, std::uint64_t key) {
    Event& edge = Add();
    edge.kind = kind;
    edge.thread = thread;
    edge.address = key;
    TellIfMany();
  }
  // An atomic access that orders, and is none that could race: by kAtomicRead the thread may have
  // seen what was released to [address, address + size), by kAtomicRmw the kernel changes it for
  // the thread.
  void AddOrder(ThreadId thread, EventKind kind, MemoryOrder order, std::uint64_t address,
                std::uint64_t size) {
    Event& access = Add();
    access.kind = kind;
    access.order = order;
    access.flags = kOnlyOrders;
    access.thread = thread;
    access.address = address;
    access.size = size;
    TellIfMany();
  }
  // To be called once an access has been filled in: there are not many that wait.
  void TellIfMany() {
    if (events_.size() >= kMost) Tell();
  }
  void Tell();

  // Until Finish, Tell does not wait for what it tells to be dealt with.
  void Defer() { finishes_ = false; }
  // What was told has been dealt with.
  void Finish();

  // Whether TakeNewlyAtomicCode has anything to give. Thread-safe.
  bool has_newly_atomic_code() const { return has_newly_atomic_; }
  // Instructions that count as atomic since this was last asked.
  std::vector<Range> TakeNewlyAtomicCode();

 private:
  static constexpr std::size_t kMost = 256;  // 12 KiB

  void NoteNewlyAtomic();

  ExecutionObserver& observer_;
  std::vector<Event> events_;  // that the observer is yet to know of
  bool finishes_ = true;
  std::vector<Range> newly_atomic_;
  std::atomic<bool> has_newly_atomic_ = false;  // newly_atomic_ is not empty
};

}  // namespace trapline
