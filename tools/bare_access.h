// Plain loads and stores of code without debug info, or without a line: which of them are taken for
// operations of atomics where they meet what nothing orders them with (docs/detection.md).
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "detector/detector.h"
#include "symbols/bare_code.h"
#include "tools/waiting_loops.h"
#include "translator/instruction.h"

namespace trapline {

// A plain load or store of code without debug info or by an atomic operation's macro, or a store
// without a line; any other instruction is kNo. Of code where oneTBB's headers may be inlined also
// an update, which a relaxed load and store become.
struct BareAccess {
  BareCode code = BareCode::kNo;
  bool writes = false, updates = false;
  bool may_be_tbb_flag = false;
  bool waits = false;  // a load: in a loop that does nothing else (WaitingLoops)
  std::uint32_t size = 0;
};

// Whether `instruction` may be one, by its form alone.
bool MayBeBareAccess(const Instruction& instruction);
// `instruction`, which may be one and is at `ip`, in such code.
BareAccess BareAccessOf(const Instruction& instruction, std::uint64_t ip, BareCode code,
                        WaitingLoops& loops);

// `instruction`, by a macro that stands for an atomic operation; kNo: it is no plain load or store.
BareAccess MacroAccessOf(const Instruction& instruction);

// Whether the code at `ip` begins with a plain load of memory that a `lock cmpxchg` soon behind it
// changes, with no branch in between: the first load of an atomic update.
bool LoadsForExchange(std::span<const unsigned char> code, std::uint64_t ip);

// Why plain loads and stores are taken for atomic without debug info.
enum class Presumption : std::uint8_t {
  kTbbRelaxed,   // by their form; they order nothing, and are not told as atomic ones
  kMetAtomic,    // an atomic operation was there that nothing orders
  kMergedStore,  // likewise, and it has no line, though there is debug info
  kRust,         // only unsafe code would race there
  kMacro,        // a macro in the source says so
  kWaitedFor,    // a loop waits for it
};

struct Judgement {
  Meeting meeting = Meeting::kRace;
  Presumption why{};  // unless it is a race
};

// What two conflicting accesses are that nothing orders, the first one the earlier one: whether
// they are operations of atomics, of which at least one was compiled to a plain load or store. Both
// must be of the same bytes, and each an atomic one or such an instruction of code without debug
// info, or a store without a line, or one by a macro that stands for an atomic operation. Of two of
// the latter, both must be Rust, where only unsafe code could race, or macros', or use a flag of
// oneTBB's that orders nothing, or one must be a load that waits for the other's store.
// `first_bare`, `second_bare`: what they are by their instructions; kNo also where the user says
// that it is a plain one.
Judgement JudgeMeeting(const Access& first, const BareAccess& first_bare, const Access& second,
                       const BareAccess& second_bare);
// The same, of what two functions say of an access: bare_of, and macro_of (kMacro or kNo), for
// which sources are read, and which is asked only if there is a race otherwise.
Judgement JudgeMeeting(const Access& first, const Access& second,
                       const std::function<BareAccess(const Access&)>& bare_of,
                       const std::function<BareAccess(const Access&)>& macro_of);

}  // namespace trapline
