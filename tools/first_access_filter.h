// Which accesses a log needs if it is to hold only the first of each thread, place and epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "detector/event.h"

namespace trapline {

// A place is an instruction together with the bytes it touches, and an epoch lasts until the
// thread's next synchronisation (of any kind, so that its lockset is the same too). FastTrack
// ignores accesses that another one of the same thread and epoch has gone before (rules "read same
// epoch", "write same epoch"), so every location that races in the whole log races in the filtered
// one; further pairs of places may be missing where others touched the location in between.
// Atomics synchronise and always pass.
// Memory: up to 32 KiB a thread, so that it stays in the processor's cache: from the code cache
// most repeated accesses do not come this far. Not thread-safe.
class FirstAccessFilter {
 public:
  // Whether `event`, the next of the execution, is to be recorded.
  bool Passes(const Event& event) {
    if (IsPlainAccess(event.kind)) return TableOf(event.thread).Insert(event, clearings_);
    if (event.kind == EventKind::kThreadEnd) {
      tables_.erase(event.thread);
      last_ = nullptr;
    } else if (IsSynchronisation(event.kind)) {
      TableOf(event.thread).Clear();
    } else if (event.kind == EventKind::kClearHistory || event.kind == EventKind::kCopyHistory) {
      ++clearings_;  // what was recorded of those bytes is forgotten
    }
    return true;
  }

  void Clear() {
    tables_.clear();
    last_ = nullptr;
  }

 private:
  // What a thread has accessed in its epoch. It may forget: that costs no more than a repeated
  // record. Sets of neighbouring cells, void unless they are of this epoch.
  class Table {
   public:
    // False: is there already.
    bool Insert(const Event& access, std::uint64_t clearings) {
      if (clearings != clearings_) Clear();
      clearings_ = clearings;
      if (used_ > cells_.size() / 2 && cells_.size() < kMostCells) {
        cells_.assign(4 * cells_.size(), {});
        used_ = 0;
      }
      const Cell wanted = {access.ip, access.address,
                           access.size << 8 | static_cast<std::uint64_t>(access.kind), epoch_};
      const std::size_t hash = Hash(wanted);
      Cell* const set = &cells_[hash & (cells_.size() - kWays)];
      for (std::size_t i = 0; i < kWays; ++i) {
        if (set[i] == wanted) return false;
        if (set[i].epoch == epoch_) continue;
        set[i] = wanted;
        ++used_;
        return true;
      }
      set[hash >> 32 & (kWays - 1)] = wanted;
      return true;
    }
    void Clear() {
      ++epoch_;
      used_ = 0;
    }

   private:
    static constexpr std::size_t kWays = 4, kMostCells = 1 << 10;
    struct Cell {
      std::uint64_t ip = 0, address = 0, size_and_kind = 0, epoch = 0;
      friend bool operator==(const Cell&, const Cell&) = default;
    };
    static std::size_t Hash(const Cell& cell) {
      std::uint64_t hash = cell.ip * 0x9e3779b97f4a7c15ull + cell.address;
      hash = (hash ^ hash >> 29) * 0x9e3779b97f4a7c15ull + cell.size_and_kind;
      return hash ^ hash >> 32;
    }

    std::vector<Cell> cells_ = std::vector<Cell>(64);  // a power of two
    std::size_t used_ = 0;                             // of this epoch
    std::uint64_t epoch_ = 1;
    std::uint64_t clearings_ = 0;
  };

  Table& TableOf(ThreadId thread) {
    if (last_ == nullptr || thread != last_thread_) {
      last_ = &tables_[thread];
      last_thread_ = thread;
    }
    return *last_;
  }

  std::unordered_map<ThreadId, Table> tables_;
  Table* last_ = nullptr;  // of last_thread_
  ThreadId last_thread_ = 0;
  std::uint64_t clearings_ = 0;
};

}  // namespace trapline
