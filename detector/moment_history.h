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
    pieces_.back().Add(moment, clock);
    ++size_;
  }

  // The latest moment given to Add; 0: none.
  std::uint64_t latest_moment() const {
    return pieces_.empty() ? 0 : pieces_.back().latest_moment();
  }

  // The clock that a change at `moment` has led to. Where changes were added late, it may be that
  // of a change soon after.
  std::optional<Clock> ClockAfter(std::uint64_t moment) const {
    auto piece = PieceAfter(moment);
    if (piece != pieces_.begin() && std::prev(piece)->latest_moment() >= moment) --piece;
    if (piece == pieces_.end()) return std::nullopt;
    const std::vector<Change>& changes = piece->changes;
    const std::size_t at = piece->Before(moment > piece->moment ? moment - piece->moment : 0);
    if (at + 1 < changes.size() && changes[at + 1].moment != changes[at].moment)
      return piece->clock + changes[at].clock;
    return ClockAt(piece->moment + changes[at].moment);
  }

  // The clock at `moment`; nothing if that is before all that is kept.
  std::optional<Clock> ClockAt(std::uint64_t moment) const {
    const auto after = PieceAfter(moment);
    if (after == pieces_.begin()) return std::nullopt;
    const Piece& piece = *std::prev(after);
    const std::size_t later = piece.Before(moment - piece.moment + 1);
    return piece.clock + piece.changes[later - 1].clock;  // the first change is at 0
  }

 private:
  static constexpr std::size_t kInPiece = 4096;
  static constexpr std::size_t kStep = 16;

  // Both from those of the piece.
  struct Change {
    std::uint32_t moment;
    std::uint32_t clock;
  };
  struct Piece {
    std::uint64_t moment;
    Clock clock;
    std::vector<Change> changes{};
    // The moments of every kStep'th change, the first left out: who looks for one waits for two
    // distant cache lines instead of one for each halving.
    std::vector<std::uint32_t> steps{};

    void Add(std::uint64_t at, Clock value) {
      const Change change{static_cast<std::uint32_t>(at - moment),
                          static_cast<std::uint32_t>(value - clock)};
      if (changes.size() % kStep == 0 && !changes.empty()) steps.push_back(change.moment);
      changes.push_back(change);
    }
    // How many changes are before `wanted`.
    std::size_t Before(std::uint64_t wanted) const {
      const auto step = std::lower_bound(steps.begin(), steps.end(), wanted);
      const std::size_t first = static_cast<std::size_t>(step - steps.begin()) * kStep;
      const std::size_t end = std::min(first + kStep, changes.size());
      std::size_t before = first;
      for (std::size_t i = first; i < end; ++i) before += changes[i].moment < wanted ? 1 : 0;
      return before;
    }

    bool Has(std::uint64_t at, Clock value) const {
      constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
      return changes.size() < kInPiece && at - moment <= kMost && value - clock <= kMost;
    }
    std::uint64_t latest_moment() const { return moment + changes.back().moment; }
    Clock LatestClock() const { return clock + changes.back().clock; }
  };

  // The first piece that begins after `moment`.
  std::vector<Piece>::const_iterator PieceAfter(std::uint64_t moment) const {
    return std::upper_bound(
        pieces_.begin(), pieces_.end(), moment,
        [](std::uint64_t wanted, const Piece& piece) { return wanted < piece.moment; });
  }

  void AddPiece(std::uint64_t moment, Clock clock) {
    std::size_t old = 0;
    while (old < pieces_.size() && size_ - pieces_[old].changes.size() >= kLeast)
      size_ -= pieces_[old++].changes.size();
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(old));
    pieces_.push_back({moment, clock});
  }

  std::vector<Piece> pieces_;  // some 64
  std::size_t size_ = 0;       // changes
};

}  // namespace trapline
