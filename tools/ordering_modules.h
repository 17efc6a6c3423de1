// Libraries that synchronise by plain loads and stores which no debug info calls atomic: each of
// their stores gives away, and each of their loads takes in, what their threads have done until
// then. Of those that are synchronisation through and through none is an access that could race;
// those that do their caller's atomic operations race with plain accesses. An allocator that is
// linked into a file with other code is a library of the first kind.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "symbols/linked_allocator.h"
#include "symbols/modules.h"

namespace trapline {

// Of the questions about code only ContainsNew() is thread-safe.
class OrderingModules {
 public:
  // Those that are built in, and the modules among `atomic`; neither those among `plain` nor what
  // `track` names. All are globs on file names, with or without the directory. Allocators are
  // looked for in modules that are not `is_untracked`. `modules` must outlive this object.
  OrderingModules(const std::vector<std::string>& atomic, const std::vector<std::string>& plain,
                  const std::vector<std::string>& track,
                  std::function<bool(const std::string& path)> is_untracked, Modules& modules);

  // Whether one is loaded whose accesses cannot race.
  bool SilencesAny() {
    if (generation_ != modules_.generation()) Update();
    return std::ranges::any_of(loaded_, &Range::is_silent);
  }
  // Whether the code at `ip` is theirs, of a module that was asked for by ContainsNew or is known
  // to Modules anyway.
  bool Contains(std::uint64_t ip) { return Find(ip) != nullptr; }
  // The same for code that nobody may have asked about before.
  bool ContainsNew(std::uint64_t ip);
  // Whether the module is one, or has one in it.
  bool MayBeIn(const Module& module) { return Names(module) || !AllocatorsIn(module).empty(); }
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
    const auto after = std::ranges::upper_bound(loaded_, ip, {}, &Range::begin);
    if (after == loaded_.begin()) return nullptr;
    const Range& range = *std::prev(after);
    return ip - range.begin < range.size ? &range : nullptr;
  }
  bool Names(const Module& module) const;
  bool IsSilent(const Module& module) const;
  // Those in a module that is not named itself. Thread-safe.
  const std::vector<LinkedAllocator>& AllocatorsIn(const Module& module);
  void Update();

  std::vector<std::string> silent_, counting_;
  const std::function<bool(const std::string& path)> is_untracked_;
  Modules& modules_;
  std::vector<Range> loaded_;     // lowest first, apart
  std::uint32_t generation_ = 0;  // that `loaded_` is of
  std::mutex allocators_mutex_;
  std::map<std::uint32_t, std::vector<LinkedAllocator>> allocators_;  // by module index
};

}  // namespace trapline
