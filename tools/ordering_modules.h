// Libraries that synchronise by plain loads and stores which no debug info calls atomic: each of
// their stores gives away, and each of their loads takes in, what their threads have done until
// then. Of those that are synchronisation through and through none is an access that could race;
// those that do their caller's atomic operations race with plain accesses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "symbols/modules.h"

namespace trapline {

// Of the questions about code only ContainsNew() is thread-safe.
class OrderingModules {
 public:
  // Those that are built in, and the modules among `atomic`; neither those among `plain` nor what
  // `track` names. All are globs on file names, with or without the directory. `modules` must
  // outlive this object.
  OrderingModules(const std::vector<std::string>& atomic, const std::vector<std::string>& plain,
                  const std::vector<std::string>& track, Modules& modules);

  // Whether one is loaded whose accesses cannot race.
  bool SilencesAny() {
    if (generation_ != modules_.generation()) Update();
    return std::ranges::any_of(loaded_, &Range::is_silent);
  }
  // Whether the code at `ip` is theirs, of a module that was asked for by ContainsNew or is known
  // to Modules anyway.
  bool Contains(std::uint64_t ip) { return Find(ip) != nullptr; }
  // The same for code that nobody may have asked about before.
  bool ContainsNew(std::uint64_t ip) const;
  // Whether it is code of those whose accesses cannot race.
  bool Silences(std::uint64_t ip) {
    const Range* const range = Find(ip);
    return range != nullptr && range->is_silent;
  }

  // A line for each of them that is loaded (--explain).
  std::string Explanation();

 private:
  struct Range {
    std::uint64_t begin = 0, size = 0;
    bool is_silent = false;
  };

  const Range* Find(std::uint64_t ip) {
    if (generation_ != modules_.generation()) Update();
    for (const Range& range : loaded_) {
      if (ip - range.begin < range.size) return &range;
    }
    return nullptr;
  }
  bool Names(const Module& module) const;
  bool IsSilent(const Module& module) const;
  void Update();

  std::vector<std::string> silent_, counting_;
  Modules& modules_;
  std::vector<Range> loaded_;
  std::uint32_t generation_ = 0;  // that `loaded_` is of
};

}  // namespace trapline
