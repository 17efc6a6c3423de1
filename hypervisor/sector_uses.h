// The monitor's side of guest-agent/sector_use.h: which threads need not tell of what, time, and
// what the monitor itself knows of memory.
//
// Not thread-safe, but for what threads of the guest do to the sectors at the same time. When not
// started, nothing happens.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "guest-agent/agent.h"
#include "guest-agent/sector_use.h"

namespace trapline {

class SectorUses {
 public:
  // From now on sectors settle after being used in one way for so many milliseconds, or half as
  // long again. Needs the memory at TRAPLINE_REPEATS.
  void Start(std::uint32_t settle_after);
  // No sector is settled any more, nor will be.
  void End();

  // The thread with this number may leave things out if that is 1 to kSectorUsers.
  void Add(agent::ThreadPage& page, std::uint32_t user);
  void Remove(agent::ThreadPage& page, std::uint32_t user);
  // The thread, which was added, makes as many writes to settled memory of its own in the code
  // cache before it leaves that; 0: any number, which nobody counts. May come, by that thread,
  // while another one is in any other function.
  void CountWrites(agent::ThreadPage& page, std::uint32_t user, std::int64_t most) const;
  // A fork has left none of the threads.
  void RemoveAll();

  // The thread touches [address, address + size), seen by the monitor, or natively from now on.
  void Touch(std::uint32_t user, std::uint64_t address, std::uint64_t size,
             agent::SectorTouch touch);
  // [start, end) is another thing from now on. What had atomic operations stays so.
  void Forget(std::uint64_t start, std::uint64_t end);
  // So are `length` bytes at `to`, which were at `from` so far.
  void Move(std::uint64_t from, std::uint64_t to, std::uint64_t length);
  // No sector has been used.
  void Clear();

  // To be called often: time passes.
  void Age();

  // Who may have left out a read in the sector at `address`: the number of a thread,
  // kSectorOfReaders for any, kSectorOfNobody.
  std::uint32_t ReadsLeftOutBy(std::uint64_t address) const;
  // The subsector at `address` has been touched for an atomic operation. Whether that is said of it
  // for the first time: from then on nothing is left out there.
  bool NoteAtomic(std::uint64_t address);

  // Sectors, and subsectors of divided ones, that have settled so far, each time counted.
  struct Count {
    std::uint64_t own = 0, read = 0;
  };
  const Count& settled() const { return settled_; }

 private:
  void ClearSectors();
  // Calls visit(sector) for those that may be in use.
  template <class Visit>
  static void ForEachUsed(Visit&& visit);
  // Those of one group, but for eight at a time of whose bytes skip(first, bytes) is true.
  template <class Skip, class Visit>
  static void ForEachUsed(std::uint32_t group, Skip&& skip, Visit&& visit);
  // A window of time later. Whether anything has changed.
  bool Age(std::uint32_t sector);
  bool AgeWhole(std::uint32_t sector, std::uint8_t byte);
  bool AgeDivided(std::uint32_t sector, std::uint8_t byte);
  // The sector, or a part of it, has settled as the byte says.
  void NoteLeavesOut(std::uint32_t sector, std::uint8_t byte);

  std::atomic<bool> started_{false};
  std::vector<agent::ThreadPage*> threads_;
  std::uint64_t window_ = 0;   // ns
  std::uint64_t aged_at_ = 0;  // CLOCK_MONOTONIC
  // A byte for each sector, by SectorMemory::IndexOf; null: all of a group are 0.
  using Group = std::array<std::uint8_t, agent::kSectorsInGroup>;
  using Groups = std::array<std::unique_ptr<Group>, agent::kSectors / agent::kSectorsInGroup>;
  static std::uint8_t& ByteOf(Groups& groups, std::uint32_t sector);
  Groups left_out_;  // who leaves something out
  Groups atomic_;    // a bit for each subsector: NoteAtomic
  Count settled_;
};

}  // namespace trapline
