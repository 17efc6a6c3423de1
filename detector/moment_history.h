// What the clock of a thread was at earlier moments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

#include "detector/epoch.h"

namespace trapline {

// From which moment on a thread's clock was what. Eight bytes for each change of it: a program
// that releases locks all the time has hundreds of thousands. Not thread-safe.
class MomentHistory {
 public:
  // So many changes at least are kept, the latest ones.
  static constexpr std::size_t kLeast = std::size_t{1} << 18;

  // Neither is less than the last time.
  void Add(std::uint64_t moment, Clock clock) {
    if (!pieces_.empty() && pieces_.back().LatestClock() == clock) return;
    if (pieces_.empty() || !pieces_.back().Has(moment, clock)) AddPiece(moment, clock);
    Piece& last = pieces_.back();
    last.changes.push_back({static_cast<std::uint32_t>(moment - last.moment),
                            static_cast<std::uint32_t>(clock - last.clock)});
    ++size_;
  }

  // The latest moment given to Add; 0: none.
  std::uint64_t latest_moment() const {
    return pieces_.empty() ? 0 : pieces_.back().moment + pieces_.back().changes.back().moment;
  }

  // The clock that a change at `moment` has led to. Where changes were added late, it may be that
  // of a change soon after.
  std::optional<Clock> ClockAfter(std::uint64_t moment) const {
    const auto piece = std::lower_bound(pieces_.begin(), pieces_.end(), moment,
                                        [](const Piece& each, std::uint64_t wanted) {
                                          return each.moment + each.changes.back().moment < wanted;
                                        });
    if (piece == pieces_.end()) return std::nullopt;
    const auto change = std::lower_bound(piece->changes.begin(), piece->changes.end(), moment,
                                         [&](const Change& each, std::uint64_t wanted) {
                                           return piece->moment + each.moment < wanted;
                                         });
    return ClockAt(piece->moment + change->moment);
  }

  // The clock at `moment`; nothing if that is before all that is kept.
  std::optional<Clock> ClockAt(std::uint64_t moment) const {
    const auto after = std::upper_bound(
        pieces_.begin(), pieces_.end(), moment,
        [](std::uint64_t wanted, const Piece& piece) { return wanted < piece.moment; });
    if (after == pieces_.begin()) return std::nullopt;
    const Piece& piece = *std::prev(after);
    const auto next =
        std::upper_bound(piece.changes.begin(), piece.changes.end(), moment - piece.moment,
                         [](std::uint64_t wanted, const Change& at) { return wanted < at.moment; });
    return piece.clock + std::prev(next)->clock;  // the first change is at 0
  }

 private:
  static constexpr std::size_t kInPiece = 4096;

  // Both from those of the piece.
  struct Change {
    std::uint32_t moment;
    std::uint32_t clock;
  };
  struct Piece {
    std::uint64_t moment;
    Clock clock;
    std::vector<Change> changes;

    bool Has(std::uint64_t at, Clock value) const {
      constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
      return changes.size() < kInPiece && at - moment <= kMost && value - clock <= kMost;
    }
    Clock LatestClock() const { return clock + changes.back().clock; }
  };

  void AddPiece(std::uint64_t moment, Clock clock) {
    std::size_t old = 0;
    while (old < pieces_.size() && size_ - pieces_[old].changes.size() >= kLeast)
      size_ -= pieces_[old++].changes.size();
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(old));
    pieces_.push_back({moment, clock, {}});
  }

  std::vector<Piece> pieces_;  // some 64
  std::size_t size_ = 0;       // changes
};

}  // namespace trapline
