#include "tools/waiting_loops.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <bit>
#include <boost/container/static_vector.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "tools/loop_values.h"
#include "translator/instruction.h"
#include "translator/register_use.h"

namespace trapline {
namespace {

// A set of the instructions looked at. Of the longest such loops oneTBB's, with its backoff, has
// 25, libstdc++'s atomic::wait some 40.
using Nodes = std::uint64_t;
constexpr std::size_t kMostNodes = 64;

constexpr unsigned kAllRegisters = 0xffff;

// Or tells what time it is.
bool LetsTimePass(std::string_view function) {
  static constexpr std::string_view kNames[] = {"SDL_Delay",
                                                "_ZN5boost11this_thread5yieldEv",
                                                "_ZN7QThread18yieldCurrentThreadEv",
                                                "_ZN7QThread5sleepEm",
                                                "_ZN7QThread6msleepEm",
                                                "_ZN7QThread6usleepEm",
                                                "_ZNSt6chrono3_V212steady_clock3nowEv",
                                                "_ZNSt6chrono3_V212system_clock3nowEv",
                                                "__clock_gettime",
                                                "__clock_nanosleep",
                                                "__errno_location",
                                                "__gettimeofday",
                                                "__kmpc_flush",
                                                "__nanosleep",
                                                "__sched_yield",
                                                "apr_sleep",
                                                "apr_thread_yield",
                                                "clock_gettime",
                                                "clock_nanosleep",
                                                "g_get_monotonic_time",
                                                "g_thread_yield",
                                                "g_usleep",
                                                "gettimeofday",
                                                "nanosleep",
                                                "pthread_yield",
                                                "sched_yield",
                                                "sleep",
                                                "thrd_sleep",
                                                "thrd_yield",
                                                "time",
                                                "usleep",
                                                "uv_sleep"};
  static_assert(std::ranges::is_sorted(kNames));
  // With a version, a hash or types behind.
  static constexpr std::string_view kStarts[] = {
      "AbslInternalSleepFor",
      "_ZN3std4time7Instant3now17h",
      "_ZN3std6thread5sleep17h",
      "_ZN3std6thread9yield_now17h",
      "_ZN5boost11this_thread21no_interruption_point6hidden",
      "_ZNSt11this_thread11__sleep_for"};
  // Of Rust's newer mangling, with a hash ahead.
  static constexpr std::string_view kEnds[] = {"3std6thread5sleep", "3std6thread9functions5sleep",
                                               "3std6thread9functions9yield_now",
                                               "3std6thread9yield_now", "7Instant3now"};
  return std::ranges::binary_search(kNames, function) ||
         std::ranges::any_of(kStarts,
                             [&](std::string_view start) { return function.starts_with(start); }) ||
         (function.starts_with("_RNv") && std::ranges::any_of(kEnds, [&](std::string_view end) {
            return function.ends_with(end);
          }));
}

// What is called around a sleep, by those who have waited for long; by itself it tells nothing.
bool Sleeps(std::string_view function) {
  static constexpr std::string_view kNames[] = {"pthread_cond_signal", "pthread_cond_timedwait",
                                                "pthread_cond_wait", "pthread_mutex_lock",
                                                "pthread_mutex_unlock"};
  return std::ranges::binary_search(kNames, function);
}

unsigned Bit(std::uint8_t reg) { return reg < 16 ? 1u << reg : 0; }
Nodes Only(std::size_t node) { return Nodes{1} << node; }

template <class Visit>
void ForEach(Nodes nodes, Visit&& visit) {
  for (; nodes != 0; nodes &= nodes - 1) visit(static_cast<std::size_t>(std::countr_zero(nodes)));
}

// What is called.
enum class Callee : std::uint8_t {
  kOther,
  kSleeps,  // on the way to a loop that waits
  kWaits,   // in such a loop
};

struct Node {
  Step step;
  LoopValues before;
  Location address;  // of its one operand in memory
  Nodes next = 0;
  bool is_read = false;
  bool passes = false;   // may be part of such a loop, or of the way there
  bool repeats = false;  // may be part of such a loop
};

// nop and pause.
bool IsNothing(const Instruction& instruction) {
  return instruction.encoding == Encoding::kLegacy && instruction.operand_count == 0 &&
         ((instruction.map == kMapOneByte && instruction.opcode == 0x90 &&
           (instruction.rex & 1) == 0) ||
          (instruction.map == kMap0F && instruction.opcode >= 0x18 && instruction.opcode <= 0x1f));
}

bool IsPause(const Instruction& instruction) {
  constexpr std::uint8_t kRepeatPrefix = 0xf3;
  return IsOneByte(instruction, 0x90) && instruction.repeat_prefix == kRepeatPrefix;
}

// Registers whose values the instruction computes with, or more; those of an address in memory are
// none.
unsigned ValueRegisters(const Instruction& in) {
  const unsigned named = NamedRegisters(in);
  if (in.encoding != Encoding::kLegacy) return named;
  const bool one_byte = in.map == kMapOneByte, two_bytes = in.map == kMap0F;
  const std::uint8_t opcode = in.opcode;
  const bool of_constant =
      one_byte && (opcode == 0xc6 || opcode == 0xc7 || (opcode & 0xf0) == 0xb0);
  if (of_constant || (two_bytes && (opcode & 0xf0) == 0x90)) return 0;  // or of the flags: setcc
  const bool of_rax = one_byte && ((opcode < 0x40 && (opcode & 6) == 4) || (opcode & 0xfe) == 0xa8);
  if (of_rax) return Bit(kRax);  // cmp, test and the like of rax and a number
  const unsigned of_address = Bit(in.base) | Bit(in.index);
  if (one_byte && opcode == 0x8d) return of_address;              // lea
  if (one_byte && (opcode & 0xfe) == 0x88) return Bit(in.reg());  // mov to memory or a register
  const bool moves = (one_byte && (opcode == 0x63 || (opcode & 0xfe) == 0x8a)) ||
                     (two_bytes && ((opcode & 0xf6) == 0xb6));  // mov, movzx and movsx to reg
  if (moves) return in.modrm_is_memory() ? 0 : Bit(in.rm());
  return in.modrm_is_memory() ? (named & ~of_address) | Bit(in.reg()) : named;
}

// cmov and setcc.
bool TakesCondition(const Instruction& instruction) {
  return IsConditionalMove(instruction) ||
         (instruction.encoding == Encoding::kLegacy && instruction.map == kMap0F &&
          (instruction.opcode & 0xf0) == 0x90);
}

bool SetsFlags(const Instruction& instruction) {
  if (TakesCondition(instruction)) return false;
  if (StatusFlagUse(instruction) != FlagUse::kKeeps) return true;
  if (instruction.encoding != Encoding::kLegacy) return false;
  // Of those that set some only: multiplications, shifts, counts and tests of bits.
  static constexpr std::uint8_t kOneByte[] = {0x69, 0x6b, 0xc0, 0xc1, 0xd0, 0xd1,
                                              0xd2, 0xd3, 0xf6, 0xf7, 0xfe, 0xff};
  static constexpr std::uint8_t kTwoBytes[] = {0xa3, 0xa4, 0xa5, 0xab, 0xac, 0xad,
                                               0xaf, 0xb3, 0xba, 0xbb, 0xbc, 0xbd};
  return (instruction.map == kMapOneByte &&
          std::ranges::binary_search(kOneByte, instruction.opcode)) ||
         (instruction.map == kMap0F && std::ranges::binary_search(kTwoBytes, instruction.opcode));
}

// A word of the stack, by the register that points there; kNoRegister: none.
struct StackPlace {
  std::uint8_t base = kNoRegister;
  std::int64_t displacement = 0;
  bool operator==(const StackPlace&) const = default;
};

// The one that the instruction uses. What was not optimised puts each value on the stack first.
StackPlace PlaceOnStack(const Instruction& in) {
  if (in.branch != Branch::kNone || in.operand_count != 1) return {};
  const MemoryOperand& operand = in.operands[0];
  const bool is_stack = operand.segment == Segment::kNone && operand.index == kNoRegister &&
                        (operand.base == kRsp || operand.base == kRbp);
  return is_stack ? StackPlace{operand.base, operand.displacement} : StackPlace();
}

// Where a conditional branch leads to.
using Ways = std::array<std::uint64_t, 2>;

// The branch soon behind the load, on the straight way, that depends on what it loads.
template <class At>
std::optional<Ways> EndByValue(std::uint64_t ip, const Instruction& load, At&& instruction_at) {
  constexpr int kMostInstructions = 8;
  bool flags = SetsFlags(load);
  unsigned values = MaybeWrittenRegisters(load);
  StackPlace stored;
  if (values == kAllRegisters) return std::nullopt;
  std::uint64_t at = ip + load.length;
  for (int i = 0; i < kMostInstructions && (flags || values != 0 || stored.base != kNoRegister);
       ++i) {
    const std::optional<Instruction> next = instruction_at(at);
    if (!next) return std::nullopt;
    const std::uint64_t behind = at + next->length;
    at = next->branch == Branch::kJump ? next->target : behind;
    switch (next->branch) {
      case Branch::kJump:
        continue;
      case Branch::kConditional:
        if (flags) return Ways{behind, next->target};
        continue;
      case Branch::kCall:
      case Branch::kIndirectCall:
        values &= ~kCallerSaved;
        flags = false;
        continue;
      case Branch::kNone:
        break;
      default:
        return std::nullopt;
    }
    if (IsNothing(*next)) continue;
    const StackPlace place = PlaceOnStack(*next);
    const bool is_on_stack = place.base != kNoRegister;
    const bool is_stored = is_on_stack && place == stored;
    const bool uses = (ValueRegisters(*next) & values) != 0 || (flags && TakesCondition(*next)) ||
                      (is_stored && next->operands[0].reads);
    if (SetsFlags(*next)) flags = uses;
    const unsigned written = MaybeWrittenRegisters(*next);
    values = uses ? values | written : values & ~written;
    if (!is_on_stack || !next->operands[0].writes) continue;
    if (uses) {
      stored = place;
    } else if (is_stored) {
      stored = {};
    }
  }
  return std::nullopt;
}

bool MayBeIt(const Instruction& load) {
  return MayBeAtomic(load) && !load.operands[0].writes &&
         load.operands[0].segment == Segment::kNone;
}

}  // namespace

class WaitingLoop {
 public:
  explicit WaitingLoop(WaitingLoops& loops) : loops_(loops), source_(loops.source_) {}

  bool Contains(std::uint64_t ip) {
    const auto load = At(ip);
    if (!load || !MayBeIt(*load)) return false;
    const auto ways = End(ip, *load);
    if (!ways) return false;
    load_ = *load;
    load_ip_ = ip;
    address_ = LoopValues::AtFirst().AddressOf({.ip = ip, .instruction = load_}, load_.operands[0]);
    if (IsRepeated()) return true;
    // The way on from the loop may lead back to it, for another word, or the way back to the load
    // may do more now and then.
    return std::ranges::any_of(*ways, [&](std::uint64_t way) {
      left_ip_ = way;
      return left_ip_ != load_ip_ && IsRepeated();
    });
  }

 private:
  std::optional<Instruction> At(std::uint64_t ip) const { return loops_.InstructionAt(ip); }

  std::optional<Ways> End(std::uint64_t ip, const Instruction& load) const {
    return EndByValue(ip, load, [this](std::uint64_t at) { return At(at); });
  }

  // By the code that is not behind `left_ip_`.
  bool IsRepeated() {
    nodes_.clear();
    changed_ = 0;
    return Follow() && Decide();
  }

  Callee CalleeOf(const Step& step, const LoopValues& values) const {
    const Instruction& call = step.instruction;
    if (call.branch != Branch::kIndirectCall) return CalleeAt(call.target, values);
    if (call.modrm_is_memory()) {
      const Location slot = values.AddressOf(step, call.operands[0]);
      const bool is_known = slot.base.kind == Value::Kind::kNumber && !slot.HasIndex();
      return is_known ? ImportAt(slot.base.plus, values) : Callee::kOther;
    }
    const Value& function = values.Of(call.rm());
    if (function.narrow || (function.plus != 0 && function.kind != Value::Kind::kNumber))
      return Callee::kOther;
    switch (function.kind) {
      case Value::Kind::kNumber:
        return CalleeAt(function.plus, values);
      case Value::Kind::kLoaded:
        return ImportAt(function.of, values);
      case Value::Kind::kRegister:
        return LoadedBefore(static_cast<std::uint8_t>(function.of), values);
      default:
        return Callee::kOther;
    }
  }

  // The function whose address the register has got little ahead of the first load, on the straight
  // way there.
  Callee LoadedBefore(std::uint8_t reg, const LoopValues& values) const {
    constexpr std::uint64_t kMostBytes = 96, kLoadLength = 7;
    if ((kCallerSaved & Bit(reg)) != 0) return Callee::kOther;
    for (std::uint64_t back = kLoadLength; back <= kMostBytes; ++back) {
      std::uint64_t at = load_ip_ - back;
      const auto pointer = At(at);
      if (!pointer || !LoadsPointer(*pointer, reg)) continue;
      const Callee loaded = ImportAt(PlaceOf(at, *pointer), values);
      if (loaded == Callee::kOther) continue;
      for (at += pointer->length; at < load_ip_;) {
        const auto next = At(at);
        const bool goes_on =
            next && next->effects_known &&
            (next->branch == Branch::kNone || next->branch == Branch::kCall ||
             next->branch == Branch::kConditional || next->branch == Branch::kIndirectCall);
        if (!goes_on ||
            (next->branch == Branch::kNone && (MaybeWrittenRegisters(*next) & Bit(reg)) != 0)) {
          break;
        }
        at += next->length;
      }
      if (at == load_ip_) return loaded;
    }
    return Callee::kOther;
  }

  static bool LoadsPointer(const Instruction& in, std::uint8_t reg) {
    return IsOneByte(in, 0x8b) && in.rex_w() && in.reg() == reg && in.base == kRip;
  }

  // Of an operand relative to rip.
  static std::uint64_t PlaceOf(std::uint64_t ip, const Instruction& in) {
    return ip + in.length + static_cast<std::uint64_t>(in.operands[0].displacement);
  }

  // What the dynamic linker stores at `slot`.
  Callee ImportAt(std::uint64_t slot, const LoopValues& values) const {
    const StoredAddress stored = source_.import_at(slot);
    return stored.address != 0 ? CalleeAt(stored.address, values) : Named(stored.name, values);
  }

  // By its name, or as a stub of the linker's or what ends by calling another: endbr64, and a jump.
  Callee CalleeAt(std::uint64_t function, const LoopValues& values) const {
    std::uint64_t at = function;
    for (int i = 0; i < 2; ++i) {
      const auto stub = At(at);
      if (!stub) break;
      if (stub->branch == Branch::kIndirectJump) {
        if (stub->base != kRip || stub->operand_count == 0) return Callee::kOther;
        return Named(source_.import_at(PlaceOf(at, *stub)).name, values);
      }
      at += stub->length;
    }
    return Named(source_.function_at(function), values);
  }

  static Callee Named(std::string_view function, const LoopValues& values) {
    if (LetsTimePass(function) || (function == "syscall" && CallsFutex(values, kRdi)))
      return Callee::kWaits;
    return Sleeps(function) ? Callee::kSleeps : Callee::kOther;
  }

  // Whether the number of the system call, which is in that register, is futex's, or comes from
  // elsewhere, where it has been before.
  static bool CallsFutex(const LoopValues& values, std::uint8_t reg) {
    const Value& number = values.Of(reg);
    return number.IsNumber(SYS_futex) || number.kind == Value::Kind::kSlot ||
           (number.kind == Value::Kind::kRegister && number.of != reg);
  }

  // What may be reached from the load by instructions that pass, and what is known there.
  bool Follow() {
    constexpr int kMostSteps = 1024;
    Reach(load_ip_, LoopValues::AtFirst());
    for (int steps = 0; changed_ != 0; ++steps) {
      if (steps == kMostSteps) return false;
      Node& node = nodes_[static_cast<std::size_t>(std::countr_zero(changed_))];
      changed_ &= changed_ - 1;
      LoopValues values = node.before;
      Judge(node);
      node.next = 0;
      if (!node.passes) continue;
      const Instruction& in = node.step.instruction;
      if (in.branch == Branch::kNone) {
        if (!IsNothing(in)) values.Execute(node.step);
      } else if (in.branch == Branch::kSyscall) {
        values.Forget(Bit(kRax) | Bit(kRcx) | Bit(11));
      } else if (in.branch == Branch::kCall || in.branch == Branch::kIndirectCall) {
        values.Forget(kCallerSaved);
      }
      const std::uint64_t behind = node.step.ip + in.length;
      Nodes next = 0;
      if (in.branch != Branch::kJump) next |= Reach(behind, values);
      if (in.branch == Branch::kJump || in.branch == Branch::kConditional)
        next |= Reach(in.target, values);
      node.next = next;
    }
    return true;
  }

  // The instruction at `ip`, reached with `values`, as a set; empty when there are too many.
  Nodes Reach(std::uint64_t ip, const LoopValues& values) {
    if (ip == left_ip_) return 0;
    const auto known = std::ranges::find(nodes_, ip, [](const Node& node) { return node.step.ip; });
    const auto index = static_cast<std::size_t>(known - nodes_.begin());
    if (index == kMostNodes) return 0;
    if (known == nodes_.end()) {
      Node& node = nodes_.emplace_back();
      node.step.ip = ip;
      node.step.number = index;
      node.before = values;
      Read(node);
      changed_ |= Only(index);
    } else if (known->before.Join(values)) {
      changed_ |= Only(index);
    }
    return Only(index);
  }

  void Read(Node& node) const {
    const auto in = At(node.step.ip);
    node.is_read = in && in->effects_known;
    if (!node.is_read) return;
    node.step.Take(*in, loops_.CodeAt(node.step.ip));
  }

  void Judge(Node& node) const {
    const Instruction& in = node.step.instruction;
    node.passes = node.repeats = node.is_read;
    if (!node.is_read) return;
    switch (in.branch) {
      case Branch::kNone:
        for (const MemoryOperand& operand : in.memory()) JudgeOperand(node, operand);
        break;
      case Branch::kJump:
      case Branch::kConditional:
        break;
      case Branch::kCall:
      case Branch::kIndirectCall:
        Judge(node, CalleeOf(node.step, node.before));
        break;
      case Branch::kSyscall:
        node.passes = CallsFutex(node.before, kRax);
        break;
      default:
        node.passes = false;
    }
  }

  static void Judge(Node& node, Callee callee) {
    node.passes = callee != Callee::kOther;
    node.repeats = callee == Callee::kWaits;
  }

  void JudgeOperand(Node& node, const MemoryOperand& operand) const {
    const Location address = node.before.AddressOf(node.step, operand);
    if (node.step.instruction.operand_count == 1) node.address = address;
    if (address.Varies()) node.passes = false;
    if (!operand.writes) return;
    // What is waited for may lie on the stack as well.
    if (operand.segment == Segment::kNone && address.IsOnStack() && !address_.IsOnStack()) return;
    node.repeats = false;
    if (!node.step.instruction.atomic) node.passes = false;
  }

  bool IsLoadOfWord(const Node& node) const {
    const Instruction& in = node.step.instruction;
    if (!MayBeIt(in) || !End(node.step.ip, in)) return false;
    return node.step.ip == load_ip_ || (in.operands[0].size == load_.operands[0].size &&
                                        node.address == address_ && address_.IsExact());
  }

  // For each node what is reached from it, itself only by a way back.
  std::array<Nodes, kMostNodes> Reached(Nodes of) const {
    std::array<Nodes, kMostNodes> reached{};
    ForEach(of, [&](std::size_t i) { reached[i] = nodes_[i].next & of; });
    ForEach(of, [&](std::size_t by) {
      ForEach(of, [&](std::size_t from) {
        if ((reached[from] & Only(by)) != 0) reached[from] |= reached[by];
      });
    });
    return reached;
  }

  // Whether time is meant to pass: nobody does that but for waiting.
  static bool PassesTime(const Node& node) {
    return node.step.instruction.branch == Branch::kSyscall ||
           node.step.instruction.branch == Branch::kCall ||
           node.step.instruction.branch == Branch::kIndirectCall || IsPause(node.step.instruction);
  }

  // A loop that lets no time pass may be any search, unless all its addresses are the same from the
  // start.
  static bool IsOfSearch(const Node& node) {
    const Value& base = node.address.base;
    return base.kind >= Value::Kind::kLoaded || node.address.index.kind >= Value::Kind::kLoaded;
  }

  bool Decide() const {
    Nodes passing = 0, repeating = 0, loads = 0, passes_time = 0, searching = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      if (!node.passes) continue;
      passing |= Only(i);
      if (!node.repeats) continue;
      repeating |= Only(i);
      if (IsLoadOfWord(node)) loads |= Only(i);
      if (PassesTime(node)) passes_time |= Only(i);
      if (IsOfSearch(node)) searching |= Only(i);
    }
    loads &= Reached(passing)[0] | Only(0);
    const std::array<Nodes, kMostNodes> reached = Reached(repeating);
    const std::array<Nodes, kMostNodes> of_fixed = Reached(repeating & ~searching);
    bool repeated = false;
    ForEach(loads, [&](std::size_t load) {
      repeated = repeated || (of_fixed[load] & Only(load)) != 0;
      ForEach(reached[load] & passes_time, [&](std::size_t passes) {
        repeated = repeated || (reached[passes] & Only(load)) != 0;
      });
    });
    return repeated;
  }

  WaitingLoops& loops_;
  const CodeSource& source_;
  Instruction load_;
  std::uint64_t load_ip_ = 0;
  std::uint64_t left_ip_ = 0;  // a way that is not followed; 0: all are
  Location address_;           // that it loads from
  boost::container::static_vector<Node, kMostNodes> nodes_;  // the load is the first one
  Nodes changed_ = 0;  // are to be followed: more may be reached, or less is known
};

bool WaitingLoops::Repeat(std::uint64_t ip) {
  const std::lock_guard lock(mutex_);
  if (const std::uint32_t now = source_.generation(); std::exchange(generation_, now) != now)
    blocks_.fill({});
  return WaitingLoop(*this).Contains(ip);
}

std::optional<Instruction> WaitingLoops::InstructionAt(std::uint64_t ip) {
  const std::uint64_t address = ip & ~(kBlock - 1), offset = ip - address;
  Block& block = blocks_[ip / kBlock % blocks_.size()];
  if (block.address != address) {
    block.address = address;
    block.size = source_.read(address, block.bytes.data(), block.bytes.size());
    if (block.size == 0) block.size = source_.read(address, block.bytes.data(), kBlock);
  }
  if (offset >= block.size) return std::nullopt;
  return Decode(std::span(block.bytes).first(block.size).subspan(offset), ip);
}

std::span<const unsigned char> WaitingLoops::CodeAt(std::uint64_t ip) const {
  const Block& block = blocks_[ip / kBlock % blocks_.size()];
  return std::span(block.bytes).subspan(ip % kBlock);
}

bool WaitingLoops::MayRepeat(std::uint64_t ip, std::span<const unsigned char> code) {
  const auto load = Decode(code, ip);
  if (!load || !MayBeIt(*load)) return false;
  bool goes_on = false;  // behind the end of `code`, or elsewhere
  const auto end = EndByValue(ip, *load, [&](std::uint64_t at) -> std::optional<Instruction> {
    goes_on = at - ip + kMaximumInstructionLength > code.size();
    return goes_on ? std::nullopt : Decode(code.subspan(at - ip), at);
  });
  return end || goes_on;
}

}  // namespace trapline
