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

// From which moment on a thread's clock was what. Five bytes for most changes of it: a program that
// releases locks all the time has hundreds of thousands. Not thread-safe.
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
    const Place place = piece->FirstFrom(moment > piece->moment ? moment - piece->moment : 0);
    const Change change = piece->At(place);
    const Place next{place.group, place.number + 1};
    if (next.number < piece->changes.size() && piece->At(next).moment != change.moment)
      return piece->clock + change.clock;
    return ClockAt(piece->moment + change.moment);
  }

  // The clock at `moment`; nothing if that is before all that is kept.
  std::optional<Clock> ClockAt(std::uint64_t moment) const {
    const auto after = PieceAfter(moment);
    if (after == pieces_.begin()) return std::nullopt;
    const Piece& piece = *std::prev(after);
    const Place later = piece.FirstFrom(moment - piece.moment + 1);  // the first change is at 0
    return piece.clock + piece.At({later.group, later.number - 1}).clock;
  }

 private:
  static constexpr std::size_t kInPiece = 4096;
  // A group has so many changes, fewer where they lie far apart.
  static constexpr std::uint32_t kMostInGroup = 16;

  // Both from those of the piece.
  struct Change {
    std::uint32_t moment;
    std::uint32_t clock;
  };
  // Both from those of the group's first one.
  struct NearChange {
    std::uint16_t moment;
    std::uint16_t clock;
  };
  struct Group {
    std::uint32_t clock;  // of its first change
    std::uint32_t first;  // which one that is
  };
  // A change, and its group or one before that.
  struct Place {
    std::size_t group, number;
  };
  struct Piece {
    std::uint64_t moment;
    Clock clock;
    std::vector<NearChange> changes{};
    // The moments of the groups' first changes, apart from all else: who looks for one waits for
    // two distant cache lines instead of one for each halving.
    std::vector<std::uint32_t> group_moments{};
    std::vector<Group> groups{};

    void Add(std::uint64_t at, Clock value) {
      const auto to_moment = static_cast<std::uint32_t>(at - moment);
      const auto to_clock = static_cast<std::uint32_t>(value - clock);
      if (!HasRoom(to_moment, to_clock)) {
        group_moments.push_back(to_moment);
        groups.push_back({to_clock, static_cast<std::uint32_t>(changes.size())});
      }
      changes.push_back({static_cast<std::uint16_t>(to_moment - group_moments.back()),
                         static_cast<std::uint16_t>(to_clock - groups.back().clock)});
    }
    // Whether the last group can take that change, too.
    bool HasRoom(std::uint32_t to_moment, std::uint32_t to_clock) const {
      constexpr std::uint32_t kMost = std::numeric_limits<std::uint16_t>::max();
      return !groups.empty() && changes.size() - groups.back().first < kMostInGroup &&
             to_moment - group_moments.back() <= kMost && to_clock - groups.back().clock <= kMost;
    }
    // The first change at `wanted` or later, in the group of the one before it or in the next one.
    Place FirstFrom(std::uint64_t wanted) const {
      const auto later = std::lower_bound(group_moments.begin(), group_moments.end(), wanted);
      if (later == group_moments.begin()) return {0, 0};
      const auto next = static_cast<std::size_t>(later - group_moments.begin());
      const std::size_t first = groups[next - 1].first;
      const std::size_t end = next < groups.size() ? groups[next].first : changes.size();
      const std::uint64_t from = group_moments[next - 1];
      std::size_t number = first;
      for (std::size_t i = first; i < end; ++i) number += from + changes[i].moment < wanted ? 1 : 0;
      return {next - 1, number};
    }
    Change At(Place place) const {
      auto [group, number] = place;
      while (group + 1 < groups.size() && groups[group + 1].first <= number) ++group;
      return {group_moments[group] + changes[number].moment,
              groups[group].clock + changes[number].clock};
    }

    bool Has(std::uint64_t at, Clock value) const {
      constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
      return changes.size() < kInPiece && at - moment <= kMost && value - clock <= kMost;
    }
    std::uint64_t latest_moment() const {
      return moment + group_moments.back() + changes.back().moment;
    }
    Clock LatestClock() const { return clock + groups.back().clock + changes.back().clock; }
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
