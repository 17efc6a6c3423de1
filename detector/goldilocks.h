// Goldilocks: precise detection without vector clocks. Each access carries the set of threads and
// synchronisation devices through which it is known to have happened (Elmas, Qadeer and Tasiran,
// PLDI 2007; FastTrack, section 4.1).
//
// The lazy form: synchronisation events go into one list, and the set of an access is brought up to
// date only when the access is compared. Accesses of one thread between two of its outgoing edges
// share one set. A set with all threads that are alive has all that come later, too, since these
// are started by others: it is complete, and need not be brought up to date any more.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "detector/barrier_rounds.h"
#include "detector/detector_base.h"
#include "detector/shadow_memory.h"

namespace trapline {

class Goldilocks final : public DetectorBase<Goldilocks> {
 public:
  using DetectorBase::DetectorBase;

  void OnPlain(const Event& event, std::uint64_t index);
  void OnAtomic(const Event& event, std::uint64_t index, bool access_counts, bool synchronises);
  void OnSynchronise(const Event& event, std::uint64_t index);
  void OnClear(std::uint64_t address, std::uint64_t size);
  void OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size);

  std::vector<Statistic> statistics() const override;
  std::string_view name() const override { return "goldilocks"; }

 private:
  enum class DeviceKind : std::uint8_t {
    kThread,
    kLock,        // the exclusive side of a lock
    kLockShared,  // its shared side
    kKey,
    kBarrier,  // one round of one barrier
    kAtomic,   // one byte of memory with atomic accesses
  };
  struct Device {
    DeviceKind kind;
    std::uint64_t id;
    std::uint64_t round = 0;  // kBarrier
    friend bool operator==(const Device&, const Device&) = default;
    friend bool operator<(const Device& a, const Device& b) {
      return std::tie(a.kind, a.id, a.round) < std::tie(b.kind, b.id, b.round);
    }
  };
  // An entry of the list: how every set LS changes.
  struct Transfer {
    enum class Effect : std::uint8_t {
      kAdd,      // from ∈ LS => add `to`
      kReplace,  // likewise, and otherwise remove `to`
      kClear,    // remove the atomic devices in [from.id, from.id + size)
      kCopy,     // atomic devices of [to.id, to.id + size) become those of [from.id, ...)
    };
    Effect effect;
    Device from;
    Device to;
    std::uint64_t size = 0;
  };
  // LS of some accesses, as of a position in the list.
  struct Lockset {
    std::vector<Device> devices;  // ascending
    std::uint64_t position = 0;
    bool complete = false;  // since `position`

    bool Contains(const Device& device) const;
    void Add(const Device& device);
    void Remove(const Device& device);
    void Apply(const Transfer& transfer);
  };
  struct Info {
    std::shared_ptr<Lockset> lockset;
    Access access;
  };
  struct Cell {
    std::vector<Info> writes;  // the last plain write
    std::vector<Info> reads;   // of each thread since then
    std::vector<Info> atomic_writes;
    std::vector<Info> atomic_reads;
  };

  static Device Thread(ThreadId thread) { return {DeviceKind::kThread, thread}; }

  // `thread` does something. One that nobody has started is in no set, not even in complete ones.
  void Meet(ThreadId thread) {
    if (thread < lives_.size() && lives_[thread].known) return;
    ReopenSets();
    Start(thread, 0);
  }
  void Start(ThreadId thread, std::uint64_t position);
  void End(ThreadId thread);
  void NoteIfComplete(Lockset* lockset) const;
  // What complete sets hold by now, so that they can be brought up to date from here on.
  void ReopenSets();

  std::uint64_t end_position() const { return first_position_ + list_.size(); }
  void Append(const Transfer& transfer);
  // `thread` makes an outgoing edge: its later accesses are no longer covered by its current set.
  void EndSpan(ThreadId thread) { current_.erase(thread); }
  // The set {thread} that accesses of `thread` carry now.
  std::shared_ptr<Lockset> Current(ThreadId thread);
  // Whether the access happened before now in the eyes of `thread`.
  bool HappenedBefore(const Info& info, ThreadId thread);
  void Advance(Lockset* lockset);
  void CollectGarbage();

  void Check(const std::vector<Info>& infos, const Access& now, std::uint64_t address,
             std::uint64_t size);
  static void Put(std::vector<Info>& infos, const Info& info);

  static constexpr std::uint64_t kLongestList = 1 << 18;

  ShadowMemory<Cell> shadow_;
  BarrierRounds rounds_;
  std::vector<Transfer> list_;
  std::uint64_t first_position_ = 0;  // of list_[0]
  std::unordered_map<ThreadId, std::shared_ptr<Lockset>> current_;
  std::vector<std::weak_ptr<Lockset>> locksets_;  // all, for CollectGarbage
  // From where to where in the list a thread is alive.
  struct Life {
    bool known = false;
    std::uint64_t start = 0, end = ~std::uint64_t{0};
  };
  std::vector<Life> lives_;  // by thread
  // Behind which position a thread last entered the device into its sets, if it is still there.
  std::map<Device, std::uint64_t> entered_;
  std::uint64_t checks_ = 0;
  std::uint64_t same_thread_ = 0;
  std::uint64_t transfers_ = 0;
};

}  // namespace trapline
