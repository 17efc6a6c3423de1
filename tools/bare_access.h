// Plain loads and stores of code without debug info, or without a line: which of them are taken for
// operations of atomics where they meet what nothing orders them with (docs/detection.md).
#pragma once

#include <cstdint>
#include <span>

#include "detector/detector.h"
#include "symbols/bare_code.h"
#include "tools/waiting_loops.h"
#include "translator/instruction.h"

namespace trapline {

// A plain load or store of code without debug info, or a store without a line; any other
// instruction is kNo. Of code where oneTBB's headers may be inlined also an update, which a relaxed
// load and store become.
struct BareAccess {
  BareCode code = BareCode::kNo;
  bool writes = false, updates = false;
  bool may_be_tbb_flag = false;
  // A load: in a loop that does nothing else (WaitingLoops), or of a word that was found to be
  // waited for so elsewhere (kWaitedFor).
  bool waits = false;
  std::uint32_t size = 0;
};

// `instruction`, which MayComeOfAtomics and is at `ip`, in such code.
BareAccess BareAccessOf(const Instruction& instruction, std::uint64_t ip, BareCode code,
                        WaitingLoops& loops);

// Whether the code at `ip` begins with a plain load of memory that a `lock cmpxchg` soon behind it
// changes, with no branch in between: the first load of an atomic update.
bool LoadsForExchange(std::span<const unsigned char> code, std::uint64_t ip);

// Why plain loads and stores are taken for atomic without debug info.
enum class Presumption : std::uint8_t {
  kTbbRelaxed,   // by their form; they order nothing, and are not told as atomic ones
  kMetAtomic,    // an atomic operation was there that nothing orders
  kMergedStore,  // likewise, and it has no line, though there is debug info
  kRust,         // only unsafe code would race there
  kWaitedFor,    // a loop waits for the word, this one or another
  kOrderSwitch,  // by their form (order_switch.h)
};

struct Judgement {
  Meeting meeting = Meeting::kRace;
  Presumption why{};  // unless it is a race
};

// What two conflicting accesses are that nothing orders, the first one the earlier one: whether
// they are operations of atomics, of which at least one was compiled to a plain load or store. Both
// must be of the same bytes, and each an atomic one or such an instruction of code without debug
// info, or a store without a line. Of two of the latter, both must be Rust, where only unsafe code
// could race, or use a flag of oneTBB's that orders nothing, or one must be a load that waits for
// the other's store. `first_bare`, `second_bare`: what they are by their instructions; kNo also
// where the user says that it is a plain one.
Judgement JudgeMeeting(const Access& first, const BareAccess& first_bare, const Access& second,
                       const BareAccess& second_bare);

}  // namespace trapline
