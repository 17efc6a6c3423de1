// PACER's vector clocks: shared while nothing is sampled, with versions that show redundant joins
// (Bond, Coons and McKinley, PLDI 2010; Algorithms 9, 10, 11 and 16).
#pragma once

#include <cstdint>
#include <memory>

#include "detector/vector_clock.h"

namespace trapline {

// A clock policy for Synchronisation. Sharing replaces deep copies in non-sampling periods: a clock
// that is referred to more than once is cloned before it changes.
class PacerClocks {
 public:
  using SharedClock = std::shared_ptr<VectorClock>;

  // Version v of thread u's clock, v@u; v = 0 stands for null.
  struct VersionEpoch {
    std::uint64_t version = 0;
    ThreadId thread = 0;
  };
  struct ThreadClock {
    SharedClock clock;
    GrowingArray<std::uint64_t> versions;  // ver_t[u]: the latest version of u's clock received
    ThreadId thread = 0;
  };
  struct ObjectClock {
    SharedClock clock;  // null = minimal
    VersionEpoch version;
    void Clear() { *this = {}; }
  };
  struct Counts {
    std::uint64_t shallow_copies = 0, deep_copies = 0;
    std::uint64_t fast_joins = 0, slow_joins = 0;
  };

  bool sampling = false;
  Counts counts;

  static const VectorClock& ClockOf(const ThreadClock& thread) { return *thread.clock; }
  static Epoch EpochOf(const ThreadClock& thread) {
    return {thread.thread, (*thread.clock)[thread.thread]};
  }
  static Epoch NowOf(const ThreadClock& thread) { return EpochOf(thread); }
  static void MoveTo(std::uint64_t /*index*/) {}

  static void Start(ThreadClock& thread, ThreadId id) {
    thread.clock = std::make_shared<VectorClock>();
    thread.clock->Set(id, 1);
    thread.thread = id;
    thread.versions.GrowTo(id + 1);
    thread.versions[id] = 1;
  }

  // Algorithm 9: C_o := C_t
  void Copy(ObjectClock& object, ThreadClock& thread) {
    if (sampling) {
      ++counts.deep_copies;
      object.clock = std::make_shared<VectorClock>(*thread.clock);
    } else {
      ++counts.shallow_copies;
      object.clock = thread.clock;
    }
    object.version = VersionOf(thread);
  }

  // Algorithm 10: C_t := inc_t(C_t); time stands still while nothing is sampled
  void Increment(ThreadClock& thread) {
    if (!sampling) return;
    Unshare(thread.clock);
    thread.clock->Increment(thread.thread);
    ++thread.versions[thread.thread];
  }

  // Algorithm 11: C_t := C_t ⊔ C_o
  void Join(ThreadClock& thread, const ObjectClock& object) {
    if (object.clock != nullptr) Join(thread, *object.clock, object.version);
  }
  void Join(ThreadClock& thread, const ThreadClock& other) {
    Join(thread, *other.clock, VersionOf(other));
  }

  // Algorithm 16: C_o := C_o ⊔ C_t
  void JoinInto(ObjectClock& object, ThreadClock& thread) {
    const bool covered =
        !sampling && (object.clock == nullptr || Received(thread, object.version) ||
                      thread.clock->Covers(*object.clock));
    if (covered) {
      ++counts.shallow_copies;
      object.clock = thread.clock;
      object.version = VersionOf(thread);
      return;
    }
    ++counts.deep_copies;
    if (object.clock == nullptr) object.clock = std::make_shared<VectorClock>();
    Unshare(object.clock);
    object.clock->Join(*thread.clock);
    object.version = {};
  }

  static void Release(ThreadClock& thread) { thread.clock = std::make_shared<VectorClock>(); }

 private:
  static VersionEpoch VersionOf(const ThreadClock& thread) {
    return {thread.versions[thread.thread], thread.thread};
  }
  static bool Received(const ThreadClock& thread, VersionEpoch epoch) {
    return epoch.version != 0 && epoch.thread < thread.versions.size() &&
           epoch.version <= thread.versions[epoch.thread];
  }
  static void Unshare(SharedClock& clock) {
    if (clock.use_count() > 1) clock = std::make_shared<VectorClock>(*clock);
  }

  void Join(ThreadClock& thread, const VectorClock& clock, VersionEpoch version) {
    if (Received(thread, version)) {  // same version epoch: nothing new in it
      ++counts.fast_joins;
      return;
    }
    ++counts.slow_joins;
    if (!thread.clock->Covers(clock)) {
      const SharedClock keep_alive = thread.clock;  // `clock` may be this very one
      Unshare(thread.clock);
      thread.clock->Join(clock);
      ++thread.versions[thread.thread];
    }
    if (version.version != 0) {
      thread.versions.GrowTo(version.thread + 1);
      thread.versions[version.thread] = version.version;
    }
  }
};

}  // namespace trapline
