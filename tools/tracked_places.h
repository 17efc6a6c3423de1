// Which functions, variables and addresses count, as the user said with --track and --untrack.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/symbolizer.h"
#include "tools/place_names.h"

namespace trapline {

// Not thread-safe.
class TrackedPlaces {
 public:
  // Each of `track` and `untrack` is an ADDRESS+LENGTH, or a glob on the names of functions and
  // variables, with or without a function's parameters. (What ends like a library's name, or has a
  // slash, is the name of a module, and no business of this class.) `symbolizer` and `use` must
  // outlive this object.
  TrackedPlaces(const std::vector<std::string>& track, const std::vector<std::string>& untrack,
                Symbolizer& symbolizer, PlaceUse& use);

  // Nothing is excluded.
  bool empty() const { return !untrack_.has_ranges() && !untrack_.has_globs(); }
  // Whether an access of [address, address + size) by the instruction at `ip` does not count: the
  // function it lies in, one inlined there, the variable, or all of the bytes are untracked, and
  // none of them is tracked.
  bool Excludes(std::uint64_t ip, std::uint64_t address, std::uint64_t size);

  // What was known of the memory no longer holds.
  void OnUnmap();

 private:
  struct Match {
    bool untracked = false, tracked = false;
    void Add(const Match& other) {
      untracked |= other.untracked;
      tracked |= other.tracked;
    }
  };
  Match MatchName(const std::string& name) const;
  Match MatchCode(std::uint64_t ip);
  Match MatchVariable(std::uint64_t address);

  const PlaceNames track_, untrack_;
  Symbolizer& symbolizer_;
  std::unordered_map<std::uint64_t, Match> code_, data_;  // answers given
};

}  // namespace trapline
