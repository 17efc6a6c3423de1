// Which plain loads and stores are taken for atomic operations, as the user said with --atomic and
// --plain; and what was inferred where the user said nothing (--explain).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "detector/event.h"
#include "symbols/symbolizer.h"
#include "tools/bare_access.h"
#include "tools/place_names.h"

namespace trapline {

struct AtomicPlacesOptions {
  std::vector<std::string> atomic, plain;
  bool explain = false;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(AtomicPlacesOptions, atomic, plain, explain)

  static constexpr const char* kName = "atomics";  // among RunOptions::observer_options
};

// Not thread-safe.
class AtomicPlaces {
 public:
  // Each of `atomic` and `plain` is an ADDRESS+LENGTH, or a glob on the names of functions and
  // variables, and on the names of source files, with or without their directory. `symbolizer` and
  // `use` must outlive this object.
  AtomicPlaces(AtomicPlacesOptions options, Symbolizer& symbolizer, PlaceUse& use)
      : options_(std::move(options)),
        atomic_("--atomic", options_.atomic, use),
        plain_("--plain", options_.plain, use),
        symbolizer_(symbolizer) {}

  bool empty() const { return options_.atomic.empty() && options_.plain.empty(); }
  const AtomicPlacesOptions& options() const { return options_; }

  // What the user said. What --plain names is plain, whatever --atomic says of it.
  enum class Said : std::uint8_t { kNothing, kAtomic, kPlain };
  Said OfCode(std::uint64_t ip);
  Said OfData(std::uint64_t address);

  // Plain loads and stores at `ip` are taken for atomic (ExecutionEvents::Judge). True if they are
  // to be told as atomic ones, and were not before.
  bool Presume(std::uint64_t ip, Presumption why);
  // Whether those at `ip` are to be told as atomic ones.
  bool IsPresumed(std::uint64_t ip) const {
    const auto presumed = presumed_.find(ip);
    return presumed != presumed_.end() && presumed->second != Presumption::kTbbRelaxed;
  }

  // Whether they were taken so because a loop waits for the word.
  bool IsWaitedFor(std::uint64_t ip) const {
    const auto presumed = presumed_.find(ip);
    return presumed != presumed_.end() && presumed->second == Presumption::kWaitedFor;
  }

  // Whether Note does anything. Thread-safe.
  bool explains() const { return options_.explain; }
  // A plain load or store at `ip` was taken for atomic.
  void Note(std::uint64_t ip, EventKind kind, std::uint64_t address, std::uint64_t size);
  // The atomic operation at `ip` was taken for one with a weaker order than its instruction has.
  void NoteOrder(std::uint64_t ip, EventKind kind, MemoryOrder order,
                 const Symbolizer::OrderAnswer& why);
  // All that was noted, with the reasons, as lines. Empty if nothing was to be noted.
  std::string Explanation();

  // What was known of [start, end), and what the user said of any memory, no longer holds.
  void OnUnmap(std::uint64_t start, std::uint64_t end);
  // What was noted is the parent's.
  void OnFork() { noted_.clear(), explained_.clear(), orders_.clear(); }

 private:
  struct Noted {
    bool store = false;
    std::uint64_t address = 0, size = 0, count = 0;
  };

  Said OfName(const std::string& name) const;
  Said OfByte(std::uint64_t address) const;
  std::string Reason(std::uint64_t ip, const Noted& noted);
  void Explain();

  const AtomicPlacesOptions options_;
  const PlaceNames atomic_, plain_;
  Symbolizer& symbolizer_;
  std::unordered_map<std::uint64_t, Said> code_, data_;  // answers given
  std::map<std::uint64_t, Presumption> presumed_;
  std::unordered_map<std::uint64_t, Noted> noted_;  // by instruction
  std::map<std::string, std::uint64_t> explained_;  // line: how often
  std::set<std::string> orders_;                    // lines
};

}  // namespace trapline
