// For how long pages have belonged to their owners. One that has been a thread's own for long may
// be handed on to the next thread that comes for it: the first one is through with it, most likely.
// Where the two use it at the same time it would be handed back and forth; so each time that a page
// was shared instead, it must have been somebody's for longer the next time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shadow-pages/address.h"

namespace trapline {

// Time is in milliseconds, from anywhere. Pages that are 512 MiB apart are one, and times of 16 s:
// a guess then goes wrong. Until SetTime nothing is kept, and there is no memory for it. Not
// thread-safe.
class PageTenure {
 public:
  void SetTime(std::uint64_t now) {
    if (pages_.empty()) pages_.resize(kPages);
    tick_ = static_cast<unsigned>(now / kTick) & kTicks;
  }

  // The pages have a new owner from now on; `first`: nobody had them before.
  void Begin(std::uint64_t start, std::uint64_t end, bool first) {
    ForEach(start, end, [&](Page& page) {
      page.since = tick_ & kTicks;
      if (first) page.level = 0;
    });
  }
  // They had an owner, and are shared now.
  void OnShared(std::uint64_t start, std::uint64_t end) {
    ForEach(start, end,
            [](Page& page) { page.level = std::min(page.level + kSteps, kHighest) & 15; });
  }
  // After SetTime.
  bool IsLong(std::uint64_t address) const {
    const Page& page = pages_[IndexOf(address)];
    return ((tick_ - page.since) & kTicks) >= kShortest << page.level;
  }

 private:
  static constexpr std::uint64_t kTick = 4;  // ms
  static constexpr unsigned kTicks = 0xfff;  // they count up to here
  static constexpr std::size_t kPages = 1 << 17;
  // 20 ms, as long as it takes memory to settle (docs/detection.md); four times as long each time,
  // up to 10 s. bench/programs with 4 threads, seconds of processor time, without the growth: ocean
  // 23 instead of 15, canneal 28 instead of 18, whose threads use all pages by turns.
  static constexpr unsigned kShortest = 5, kSteps = 2, kHighest = 9;

  struct Page {
    std::uint16_t since : 12 = 0, level : 4 = 0;
  };

  static std::size_t IndexOf(std::uint64_t address) { return address / kPageSize % kPages; }
  template <class Change>
  void ForEach(std::uint64_t start, std::uint64_t end, Change&& change) {
    if (pages_.empty()) return;
    for (std::uint64_t at = start; at < end; at += kPageSize) change(pages_[IndexOf(at)]);
  }

  unsigned tick_ = 0;
  std::vector<Page> pages_;
};

}  // namespace trapline
