// Libraries that are synchronisation through and through, and publish by plain stores what no debug
// info calls atomic: each of their stores gives away, and each of their loads takes in, what their
// threads have done until then, and none of them is an access that could race.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "symbols/modules.h"

namespace trapline {

// Whether `text` names a module where the name of a function, variable or source file could stand.
bool NamesSharedLibrary(const std::string& text);

// Contains() alone is not thread-safe.
class OrderingModules {
 public:
  // Those that are built in, and the modules among `atomic`; neither those among `plain` nor what
  // `track` names. All are globs on file names, with or without the directory. `modules` must
  // outlive this object.
  OrderingModules(const std::vector<std::string>& atomic, const std::vector<std::string>& plain,
                  const std::vector<std::string>& track, Modules& modules);

  // Whether none of them is loaded.
  bool empty() {
    if (generation_ != modules_.generation()) Update();
    return loaded_.empty();
  }
  // Whether the code at `ip` is theirs, of a module that was asked for by ContainsNew or is known
  // to Modules anyway.
  bool Contains(std::uint64_t ip) {
    if (generation_ != modules_.generation()) Update();
    for (const Range& range : loaded_) {
      if (ip - range.begin < range.size) return true;
    }
    return false;
  }
  // The same for code that nobody may have asked about before.
  bool ContainsNew(std::uint64_t ip) const;

  // A line for each of them that is loaded (--explain).
  std::string Explanation();

 private:
  struct Range {
    std::uint64_t begin = 0, size = 0;
  };

  bool Names(const Module& module) const;
  void Update();

  std::vector<std::string> ordering_, counting_;
  Modules& modules_;
  std::vector<Range> loaded_;
  std::uint32_t generation_ = 0;  // that `loaded_` is of
};

}  // namespace trapline
