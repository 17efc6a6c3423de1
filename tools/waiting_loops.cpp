#include "tools/waiting_loops.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <bit>
#include <boost/container/static_vector.hpp>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "translator/instruction.h"
#include "translator/register_use.h"

namespace trapline {
namespace {

using Nodes = std::uint32_t;            // a set of the instructions looked at
constexpr std::size_t kMostNodes = 32;  // oneTBB's longest such loop, with its backoff, has 25

// What functions may change by the System V ABI: rax, rcx, rdx, rsi, rdi, r8 to r11.
constexpr unsigned kCallerSaved = 0xfc7;
constexpr unsigned kAllRegisters = 0xffff;

bool LetsTimePass(std::string_view function) {
  static constexpr std::string_view kNames[] = {"SDL_Delay",
                                                "_ZN5boost11this_thread5yieldEv",
                                                "_ZN7QThread18yieldCurrentThreadEv",
                                                "_ZN7QThread5sleepEm",
                                                "_ZN7QThread6msleepEm",
                                                "_ZN7QThread6usleepEm",
                                                "__clock_nanosleep",
                                                "__errno_location",
                                                "__nanosleep",
                                                "__sched_yield",
                                                "apr_sleep",
                                                "apr_thread_yield",
                                                "clock_nanosleep",
                                                "g_thread_yield",
                                                "g_usleep",
                                                "nanosleep",
                                                "pthread_yield",
                                                "sched_yield",
                                                "sleep",
                                                "thrd_sleep",
                                                "thrd_yield",
                                                "usleep",
                                                "uv_sleep"};
  // With a version, a hash or types behind.
  static constexpr std::string_view kStarts[] = {
      "AbslInternalSleepFor", "_ZN3std6thread5sleep17h", "_ZN3std6thread9yield_now17h",
      "_ZN5boost11this_thread21no_interruption_point6hidden", "_ZNSt11this_thread11__sleep_for"};
  // Of Rust's newer mangling, with a hash ahead.
  static constexpr std::string_view kEnds[] = {"3std6thread5sleep", "3std6thread9functions5sleep",
                                               "3std6thread9functions9yield_now",
                                               "3std6thread9yield_now"};
  return std::ranges::binary_search(kNames, function) ||
         std::ranges::any_of(kStarts,
                             [&](std::string_view start) { return function.starts_with(start); }) ||
         (function.starts_with("_RNv") && std::ranges::any_of(kEnds, [&](std::string_view end) {
            return function.ends_with(end);
          }));
}

unsigned Bit(std::uint8_t reg) { return reg < 16 ? 1u << reg : 0; }
Nodes Only(std::size_t node) { return Nodes{1} << node; }

template <class Visit>
void ForEach(Nodes nodes, Visit&& visit) {
  for (; nodes != 0; nodes &= nodes - 1) visit(static_cast<std::size_t>(std::countr_zero(nodes)));
}

struct Node {
  std::uint64_t ip = 0;
  Nodes next = 0;
  unsigned writes = 0;                  // registers
  bool passes = false;                  // may be part of such a loop
  std::uint8_t constant = kNoRegister;  // it writes this one with `value`, more than `from` has
  std::uint8_t from = kNoRegister;
  std::uint64_t value = 0;
  Instruction instruction;
};

// nop and pause.
bool IsNothing(const Instruction& instruction) {
  return instruction.encoding == Encoding::kLegacy && instruction.operand_count == 0 &&
         ((instruction.map == kMapOneByte && instruction.opcode == 0x90 &&
           (instruction.rex & 1) == 0) ||
          (instruction.map == kMap0F && instruction.opcode >= 0x18 && instruction.opcode <= 0x1f));
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
  const unsigned group = instruction.opcode & 0xf0;
  return instruction.encoding == Encoding::kLegacy && instruction.map == kMap0F &&
         (group == 0x40 || group == 0x90);
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

// Whether a branch soon behind it, on the straight way, depends on what it loads.
template <class At>
bool EndsByValue(std::uint64_t ip, const Instruction& load, At&& instruction_at) {
  constexpr int kMostInstructions = 8;
  bool flags = SetsFlags(load);
  unsigned values = MaybeWrittenRegisters(load);
  if (values == kAllRegisters) return false;
  std::uint64_t at = ip + load.length;
  for (int i = 0; i < kMostInstructions && (flags || values != 0); ++i) {
    const std::optional<Instruction> next = instruction_at(at);
    if (!next) return false;
    at = next->branch == Branch::kJump ? next->target : at + next->length;
    switch (next->branch) {
      case Branch::kJump:
        continue;
      case Branch::kConditional:
        if (flags) return true;
        continue;
      case Branch::kCall:
      case Branch::kIndirectCall:
        values &= ~kCallerSaved;
        flags = false;
        continue;
      case Branch::kNone:
        break;
      default:
        return false;
    }
    if (IsNothing(*next)) continue;
    const bool uses = (ValueRegisters(*next) & values) != 0 || (flags && TakesCondition(*next));
    if (SetsFlags(*next)) flags = uses;
    const unsigned written = MaybeWrittenRegisters(*next);
    values = uses ? values | written : values & ~written;
  }
  return false;
}

bool MayBeIt(const std::optional<Instruction>& load) {
  return load && MayBeAtomic(*load) && !load->operands[0].writes &&
         load->operands[0].segment == Segment::kNone;
}

}  // namespace

class WaitingLoop {
 public:
  explicit WaitingLoop(WaitingLoops& loops) : loops_(loops), source_(loops.source_) {}

  bool Contains(std::uint64_t ip) {
    const auto load = At(ip);
    if (!MayBeIt(load) || !Ends(ip, *load)) return false;
    load_ = *load;
    load_ip_ = ip;
    Collect();
    return Decide();
  }

 private:
  std::optional<Instruction> At(std::uint64_t ip) const { return loops_.InstructionAt(ip); }

  bool Ends(std::uint64_t ip, const Instruction& load) const {
    return EndsByValue(ip, load, [this](std::uint64_t at) { return At(at); });
  }

  bool CallsWaiting(std::uint64_t ip, const Instruction& call) const {
    if (call.branch != Branch::kIndirectCall) return IsWaiting(call.target);
    if (call.modrm_is_memory()) return IsWaitingImport(ip, call);
    return std::ranges::any_of(nodes_,
                               [&](const Node& node) {  // loaded ahead of the loop
                                 return node.passes && LoadsPointer(node.instruction, call.rm()) &&
                                        IsWaitingImport(node.ip, node.instruction);
                               }) ||
           IsLoadedBefore(call.rm());
  }

  // Whether the register has got such a function's address little ahead of the first load, on the
  // straight way there.
  bool IsLoadedBefore(std::uint8_t reg) const {
    constexpr std::uint64_t kMostBytes = 96, kLoadLength = 7;
    if ((kCallerSaved & Bit(reg)) != 0) return false;
    for (std::uint64_t back = kLoadLength; back <= kMostBytes; ++back) {
      std::uint64_t at = load_ip_ - back;
      const auto pointer = At(at);
      if (!pointer || !LoadsPointer(*pointer, reg) || !IsWaitingImport(at, *pointer)) continue;
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
      if (at == load_ip_) return true;
    }
    return false;
  }

  static bool LoadsPointer(const Instruction& in, std::uint8_t reg) {
    return IsOneByte(in, 0x8b) && in.rex_w() && in.reg() == reg && in.base == kRip;
  }

  // What the dynamic linker stores where the instruction loads from.
  StoredAddress StoredFor(std::uint64_t ip, const Instruction& load) const {
    if (load.base != kRip || load.operand_count == 0) return {};
    return source_.import_at(Place(ip, load, load.operands[0]));
  }

  bool IsWaitingImport(std::uint64_t ip, const Instruction& load) const {
    const StoredAddress stored = StoredFor(ip, load);
    return stored.address != 0 ? IsWaiting(stored.address) : Waits(stored.name);
  }

  // By its name, or as a stub of the linker's or what ends by calling another: endbr64, and a jump.
  bool IsWaiting(std::uint64_t function) const {
    std::uint64_t at = function;
    for (int i = 0; i < 2; ++i) {
      const auto stub = At(at);
      if (!stub) break;
      if (stub->branch == Branch::kIndirectJump) return Waits(StoredFor(at, *stub).name);
      at += stub->length;
    }
    return Waits(source_.function_at(function));
  }

  bool Waits(std::string_view function) const {
    return LetsTimePass(function) || (function == "syscall" && CallsFutex(kRdi));
  }

  // Whether the number of the system call, which is in that register, is futex's, or comes from
  // another one that has had it before.
  bool CallsFutex(std::uint8_t number) const {
    return std::ranges::any_of(nodes_, [&](const Node& node) {
      if (!node.passes) return false;
      const Instruction& in = node.instruction;
      const bool copies = IsOneByte(in, 0x89) && !in.modrm_is_memory() && in.rm() == number;
      return (node.constant == number && node.value == SYS_futex) ||
             (copies && !IsWritten(in.reg()));
    });
  }

  bool IsWritten(std::uint8_t reg) const {
    return std::ranges::any_of(nodes_,
                               [&](const Node& node) { return (node.writes & Bit(reg)) != 0; });
  }

  // A move of a register of 64 bits to (0x89) or from (0x8b) its place on the stack.
  static bool MovesOnStack(const Instruction& in, std::uint8_t opcode) {
    return IsOneByte(in, opcode) && in.rex_w() && in.operand_count == 1 && in.base == kRsp &&
           in.index == kNoRegister && in.segment == Segment::kNone;
  }

  // What a register gets back that was put there before, over a call.
  bool IsReload(const Instruction& in) const {
    return MovesOnStack(in, 0x8b) && std::ranges::any_of(nodes_, [&](const Node& node) {
             const Instruction& spill = node.instruction;
             return node.passes && MovesOnStack(spill, 0x89) && spill.reg() == in.reg() &&
                    spill.operands[0].displacement == in.operands[0].displacement;
           });
  }

  unsigned ReloadedAt(std::uint64_t ip) const {
    unsigned reloaded = 0;
    for (auto in = At(ip); in && IsReload(*in); in = At(ip)) {
      reloaded |= Bit(in->reg());
      ip += in->length;
    }
    return reloaded;
  }

  // A register that is given an address, or 32 bits that the code has.
  void NoteConstant(Node& node) const {
    const Instruction& in = node.instruction;
    if (in.encoding != Encoding::kLegacy || in.map != kMapOneByte || in.operand_size_prefix) return;
    const bool is_lea = in.opcode == 0x8d && in.rex_w() && in.index == kNoRegister &&
                        in.base != kNoRegister && !in.address_size_prefix;
    const bool is_move = (in.opcode & 0xf8) == 0xb8 && !in.rex_w();
    if (is_lea) {
      node.constant = in.reg();
      node.value = static_cast<std::uint64_t>(
          loops_.NumberIn(node.ip, in.displacement_offset, in.displacement_size));
      if (in.base == kRip) {
        node.value += node.ip + in.length;
      } else {
        node.from = in.base;
      }
    } else if (is_move) {
      node.constant = static_cast<std::uint8_t>((in.opcode & 7) | (in.rex & 1) << 3);
      node.value = static_cast<std::uint32_t>(
          loops_.NumberIn(node.ip, in.immediate_offset, in.immediate_size));
    }
  }

  // Where the operand is if that is known: else by its base and index.
  struct Location {
    std::uint8_t base, index, scale;
    std::uint64_t place;
    bool operator==(const Location&) const = default;
  };
  Location LocationOf(std::uint64_t ip, const Instruction& in) const {
    const MemoryOperand& operand = in.operands[0];
    Location location{operand.base, operand.index, operand.scale, Place(ip, in, operand)};
    if (operand.index != kNoRegister) return location;
    location.scale = 1;
    if (operand.base == kRip) location.base = kNoRegister;
    if (const Node* const node = ConstantOf(operand.base)) {
      location.base = node->from;
      location.place += node->value;
    }
    return location;
  }

  // What alone of all that was looked at writes the register, a constant; null: there is none.
  const Node* ConstantOf(std::uint8_t reg) const {
    const Node* found = nullptr;
    for (const Node& node : nodes_) {
      if (!node.passes || (node.writes & Bit(reg)) == 0) continue;
      if (found != nullptr || node.constant != reg) return nullptr;
      found = &node;
    }
    return found != nullptr && IsWritten(found->from) ? nullptr : found;
  }

  // Displacement, or address if it is known.
  static std::uint64_t Place(std::uint64_t ip, const Instruction& instruction,
                             const MemoryOperand& operand) {
    return static_cast<std::uint64_t>(operand.displacement) +
           (operand.base == kRip ? ip + instruction.length : 0);
  }

  bool IsSameLoad(const Node& node) const {
    if (!MayBeAtomic(node.instruction)) return false;
    const MemoryOperand& a = load_.operands[0];
    const MemoryOperand& b = node.instruction.operands[0];
    return !b.writes && a.size == b.size && b.segment == Segment::kNone &&
           a.address_is_32_bits == b.address_is_32_bits &&
           LocationOf(load_ip_, load_) == LocationOf(node.ip, node.instruction);
  }

  // What may be reached from the load by instructions that pass.
  void Collect() {
    IndexOf(load_ip_);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = nodes_[i];
      Read(node);
      if (!node.passes) continue;
      const Instruction& in = node.instruction;
      if (in.branch != Branch::kJump) node.next |= IndexOf(node.ip + in.length);
      if (in.branch == Branch::kJump || in.branch == Branch::kConditional)
        node.next |= IndexOf(in.target);
    }
  }

  // As a set; empty when there are too many.
  Nodes IndexOf(std::uint64_t ip) {
    const auto known = std::ranges::find(nodes_, ip, &Node::ip);
    const auto index = static_cast<std::size_t>(known - nodes_.begin());
    if (index == kMostNodes) return 0;
    if (known == nodes_.end()) nodes_.emplace_back().ip = ip;
    return Only(index);
  }

  void Read(Node& node) const {
    const auto in = At(node.ip);
    node.passes = in && in->effects_known;
    if (!node.passes) return;
    node.instruction = *in;
    switch (in->branch) {
      case Branch::kNone:
        node.writes = IsNothing(*in) || IsReload(*in) ? 0 : MaybeWrittenRegisters(*in);
        NoteConstant(node);
        node.passes = std::ranges::all_of(in->memory(), [this](const MemoryOperand& operand) {
          // What is waited for may lie on the stack as well.
          return !operand.writes || (operand.base == kRsp && operand.segment == Segment::kNone &&
                                     load_.operands[0].base != kRsp);
        });
        break;
      case Branch::kJump:
      case Branch::kConditional:
        break;
      case Branch::kCall:
      case Branch::kIndirectCall:
        node.writes = kCallerSaved & ~ReloadedAt(node.ip + in->length);
        node.passes = CallsWaiting(node.ip, *in);
        break;
      case Branch::kSyscall:
        node.writes = Bit(kRax) | Bit(kRcx) | Bit(11);
        node.passes = CallsFutex(kRax);
        break;
      default:
        node.passes = false;
    }
  }

  // For each node what is reached from it, itself only by a way back.
  std::array<Nodes, kMostNodes> Reached(Nodes alive) const {
    std::array<Nodes, kMostNodes> reached{};
    ForEach(alive, [&](std::size_t i) { reached[i] = nodes_[i].next & alive; });
    ForEach(alive, [&](std::size_t by) {
      ForEach(alive, [&](std::size_t of) {
        if ((reached[of] & Only(by)) != 0) reached[of] |= reached[by];
      });
    });
    return reached;
  }

  bool Decide() {
    Nodes alive = 0, loads = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].passes) continue;
      alive |= Only(i);
      if (IsSameLoad(nodes_[i]) && Ends(nodes_[i].ip, nodes_[i].instruction)) loads |= Only(i);
    }
    while (true) {
      const std::array<Nodes, kMostNodes> reached = Reached(alive);
      // What lies on a loop through such a load, and on the way there.
      Nodes loop = 0, way = 0;
      ForEach(alive, [&](std::size_t i) {
        ForEach(reached[i] & loads, [&](std::size_t load) {
          if ((reached[load] & Only(i)) != 0) loop |= Only(i);
        });
      });
      const Nodes from_load = reached[0] | Only(0);
      if ((alive & Only(0)) == 0 || (from_load & loop) == 0) return false;
      ForEach(from_load, [&](std::size_t i) {
        if (((reached[i] | Only(i)) & loop) != 0) way |= Only(i);
      });
      unsigned written = 0;
      ForEach(loop | way, [&](std::size_t i) { written |= nodes_[i].writes; });
      for (std::uint8_t reg = 0; reg < 16; ++reg) {
        if (ConstantOf(reg) != nullptr) written &= ~Bit(reg);
      }
      Nodes varies = 0;
      ForEach(loop | way, [&](std::size_t i) {
        for (const MemoryOperand& operand : nodes_[i].instruction.memory()) {
          if (operand.implicit && operand.base == kRsp) continue;  // push and pop
          if (nodes_[i].instruction.branch == Branch::kNone &&
              ((Bit(operand.base) | Bit(operand.index)) & written) != 0) {
            varies |= Only(i);
          }
        }
      });
      if (varies == 0) return true;
      alive &= ~varies;
      loads &= ~varies;
    }
  }

  WaitingLoops& loops_;
  const CodeSource& source_;
  Instruction load_;
  std::uint64_t load_ip_ = 0;
  boost::container::static_vector<Node, kMostNodes> nodes_;  // the load is the first one
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

std::int32_t WaitingLoops::NumberIn(std::uint64_t ip, std::size_t offset, std::size_t size) const {
  std::int32_t number = 0;
  std::memcpy(&number, &blocks_[ip / kBlock % blocks_.size()].bytes[ip % kBlock + offset], size);
  return size == 1 ? static_cast<std::int8_t>(number) : number;
}

bool WaitingLoops::MayRepeat(std::uint64_t ip, std::span<const unsigned char> code) {
  const auto load = Decode(code, ip);
  if (!MayBeIt(load)) return false;
  bool goes_on = false;  // behind the end of `code`, or elsewhere
  const bool ends = EndsByValue(ip, *load, [&](std::uint64_t at) -> std::optional<Instruction> {
    goes_on = at - ip + kMaximumInstructionLength > code.size();
    return goes_on ? std::nullopt : Decode(code.subspan(at - ip), at);
  });
  return ends || goes_on;
}

}  // namespace trapline
