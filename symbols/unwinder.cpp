#include "symbols/unwinder.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "symbols/frame_rules.h"
#include "symbols/module_image.h"

namespace trapline {
namespace {

constexpr std::uint64_t kCodePage = 4096;
constexpr const char* kDebugDirectory = "/usr/lib/debug";

// What a rule is kept under: the same number means something else as an instruction's address and
// as a return address. Never 0 for addresses in the lower half.
constexpr std::uint64_t Key(std::uint64_t pc, bool is_return_address) {
  return pc << 1 | (is_return_address ? 1 : 0);
}

// From keys to rules, open addressing. Readers take no lock: a key never leaves its slot, a rule is
// one word, and a table that became too small stays readable.
class RuleTable {
 public:
  RuleTable() { tables_.push_back(std::make_unique<Table>(1024)), current_ = tables_[0].get(); }

  CompactRule Find(std::uint64_t key) const {
    const Table* table = current_.load(std::memory_order_acquire);
    const Slot& slot = table->SlotOf(key);
    if (slot.key.load(std::memory_order_acquire) != key) return {};
    return CompactRule(slot.rule.load(std::memory_order_acquire));
  }

  // One writer at a time.
  void Set(std::uint64_t key, CompactRule rule) {
    Table* table = tables_.back().get();
    if (2 * (count_ + 1) > table->size) {
      auto larger = std::make_unique<Table>(2 * table->size);
      for (std::size_t i = 0; i < table->size; ++i) {
        const std::uint64_t old = table->slots[i].key.load(std::memory_order_relaxed);
        if (old != 0) larger->Put(old, table->slots[i].rule.load(std::memory_order_relaxed));
      }
      table = larger.get();
      tables_.push_back(std::move(larger));
      current_.store(table, std::memory_order_release);
    }
    if (table->Put(key, rule.bits())) ++count_;
  }

  // One writer at a time. Forgets the rules for pcs in [begin, end).
  void Forget(std::uint64_t begin, std::uint64_t end) {
    const Table& table = *tables_.back();
    for (std::size_t i = 0; i < table.size; ++i) {
      const std::uint64_t pc = table.slots[i].key.load(std::memory_order_relaxed) >> 1;
      if (pc >= begin && pc <= end) table.slots[i].rule.store(0, std::memory_order_release);
    }
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::uint64_t> rule{0};
  };
  struct Table {
    explicit Table(std::size_t count)
        : size(count), shift(64 - std::countr_zero(count)), slots(new Slot[count]) {}

    // Where `key` is, or would be put. Never full, so there is an end.
    Slot& SlotOf(std::uint64_t key) const {
      std::size_t at = (key * 0x9e3779b97f4a7c15) >> shift;
      for (;; at = (at + 1) & (size - 1)) {
        const std::uint64_t found = slots[at].key.load(std::memory_order_relaxed);
        if (found == key || found == 0) return slots[at];
      }
    }
    // Whether the key is new.
    bool Put(std::uint64_t key, std::uint64_t rule) {
      Slot& slot = SlotOf(key);
      const bool is_new = slot.key.load(std::memory_order_relaxed) == 0;
      slot.rule.store(rule, std::memory_order_release);
      slot.key.store(key, std::memory_order_release);
      return is_new;
    }

    std::size_t size;  // a power of two
    int shift;
    std::unique_ptr<Slot[]> slots;
  };

  std::atomic<const Table*> current_{nullptr};
  std::vector<std::unique_ptr<Table>> tables_;
  std::size_t count_ = 0;
};

// The page of a stack that was read last: one call of the reader serves many frames.
class StackWindow {
 public:
  explicit StackWindow(const MemoryReader& memory) : memory_(memory) {}

  bool Read(std::uint64_t address, void* out, std::size_t size) {
    if (address - begin_ >= size_ || size > size_ - (address - begin_)) {
      if (!Fill(address, size)) return memory_(address, out, size);
    }
    std::memcpy(out, bytes_ + (address - begin_), size);
    return true;
  }

  MemoryReader reader() {
    return {[](void* window, std::uint64_t address, void* out, std::size_t size) {
              return static_cast<StackWindow*>(window)->Read(address, out, size);
            },
            this};
  }

 private:
  // A little from below as well, for a frame's saved registers lie under its return address. Not
  // beyond the page: the next one may not be there.
  bool Fill(std::uint64_t address, std::size_t size) {
    constexpr std::uint64_t kBelow = 128;
    const std::uint64_t page = address & ~(kCodePage - 1);
    const std::uint64_t begin = address - page > kBelow ? address - kBelow : page;
    const std::size_t length = std::min<std::uint64_t>(sizeof bytes_, page + kCodePage - begin);
    if (address + size > begin + length) return false;
    size_ = 0;
    if (!memory_(begin, bytes_, length)) return false;
    begin_ = begin;
    size_ = length;
    return true;
  }

  const MemoryReader& memory_;
  std::uint64_t begin_ = 0;
  std::size_t size_ = 0;
  alignas(8) char bytes_[kCodePage];
};

// `mov $15, %rax; syscall`: how every signal trampoline of x86-64 begins, for debuggers know it by
// these bytes.
constexpr unsigned char kTrampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
// The same as some C libraries write it: mov $15, %eax.
constexpr unsigned char kShortTrampoline[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};

// Whether `pc` is at one of a trampoline's two instructions.
bool IsTrampoline(std::uint64_t pc, const MemoryReader& memory) {
  const auto is_in = [&]<std::size_t kSize>(const unsigned char(&trampoline)[kSize]) {
    unsigned char code[kSize];
    for (const std::uint64_t begin : {pc, pc - (kSize - 2)}) {
      if (memory(begin, code, kSize) && std::memcmp(code, trampoline, kSize) == 0) return true;
    }
    return false;
  };
  return is_in(kTrampoline) || is_in(kShortTrampoline);
}

// The registers in the ucontext that a signal trampoline finds at rsp (sys/ucontext.h,
// uc_mcontext.gregs: r8 .. r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip).
bool ReadSignalContext(std::uint64_t rsp, StackWindow& stack, FrameRegisters& registers) {
  constexpr std::uint64_t kGeneralRegisters = 40;
  constexpr std::array<int, kRegisterCount> kOrder = {
      8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, kReturnAddress};
  std::uint64_t values[kRegisterCount];
  if (!stack.Read(rsp + kGeneralRegisters, values, sizeof values)) return false;
  for (int i = 0; i < kRegisterCount; ++i) registers[kOrder[i]] = values[i];
  return true;
}

}  // namespace

class Unwinder::Implementation {
 public:
  explicit Implementation(Modules& modules) : modules_(modules) {}

  template <typename Emit>
  std::size_t Walk(const UnwindRegisters& start, const MemoryReader& memory, std::size_t limit,
                   Emit emit) {
    FrameRegisters registers = {start.rax, start.rdx, start.rcx, start.rbx, start.rsi, start.rdi,
                                start.rbp, start.rsp, start.r8,  start.r9,  start.r10, start.r11,
                                start.r12, start.r13, start.r14, start.r15, start.rip};
    StackWindow stack(memory);
    bool is_return_address = false;
    std::uint64_t last_cfa = 0;
    std::size_t depth = 0;
    while (depth < limit) {
      const std::uint64_t pc = registers[kReturnAddress];
      const CompactRule rule = RuleFor(pc, is_return_address, memory);
      if (rule.kind() == CompactRule::Kind::kNoCode && depth != 0) break;
      StackFrame frame;
      frame.rbp = registers[kRbp];
      frame.rsp = registers[kRsp];
      frame.pc = pc;
      // A signal trampoline was not called: nothing of it lies before the address it returns to.
      const bool is_signal = IsSignalFrame(rule);
      frame.is_return_address = is_return_address && !is_signal;
      FrameRegisters caller;
      const bool goes_on =
          Step(rule, registers, is_return_address, memory, stack, caller, frame.cfa);
      emit(depth++, frame);
      if (!goes_on || caller[kReturnAddress] == 0) break;
      if (is_signal) {
        last_cfa = 0;  // the handler may have had a stack of its own
        is_return_address = false;
      } else {
        // A caller's frame lies above; anything else is garbage, or a circle.
        if (frame.cfa <= last_cfa) break;
        last_cfa = frame.cfa;
        is_return_address = true;
      }
      registers = caller;
    }
    return depth;
  }

  void OnUnmap(std::uint64_t begin, std::uint64_t end) {
    const std::unique_lock lock(mutex_);
    modules_.OnUnmap(begin, end);
    const auto page = code_pages_.lower_bound(begin & ~(kCodePage - 1));
    if (page == code_pages_.end() || *page >= end) return;
    rules_.Forget(begin, end);
    code_pages_.erase(page, code_pages_.lower_bound(end));
  }

 private:
  struct Unwindable {
    std::unique_ptr<ModuleImage> image;
    Dwarf_CFI* eh_frame = nullptr;
    Dwarf_CFI* debug_frame = nullptr;  // belongs to the image's Dwarf
    bool debug_frame_sought = false;

    Unwindable() = default;
    Unwindable(const Unwindable&) = delete;
    Unwindable& operator=(const Unwindable&) = delete;
    ~Unwindable() { dwarf_cfi_end(eh_frame); }
  };

  CompactRule RuleFor(std::uint64_t pc, bool is_return_address, const MemoryReader& memory) {
    if (pc >> 47 != 0) return CompactRule(CompactRule::Kind::kNoCode);
    const std::uint64_t key = Key(pc, is_return_address);
    const CompactRule known = rules_.Find(key);
    if (known.kind() != CompactRule::Kind::kUnknown) [[likely]]
      return known;
    const std::unique_lock lock(mutex_);
    const CompactRule rule = MakeRule(pc, is_return_address, memory);
    // Executable memory may come to be where there is none now, without anyone telling.
    if (rule.kind() != CompactRule::Kind::kNoCode) {
      rules_.Set(key, rule);
      code_pages_.insert(pc & ~(kCodePage - 1));
    }
    return rule;
  }

  CompactRule MakeRule(std::uint64_t pc, bool is_return_address, const MemoryReader& memory) {
    const std::uint64_t lookup = is_return_address ? pc - 1 : pc;
    if (!modules_.IsExecutable(lookup)) return CompactRule(CompactRule::Kind::kNoCode);
    if (IsTrampoline(pc, memory)) return CompactRule(CompactRule::Kind::kSignal);
    const Module* module = modules_.Find(lookup);
    std::optional<FullRule> full;
    if (module != nullptr) full = ReadFromModule(*module, lookup - module->bias, memory);
    if (!full) return CompactRule(CompactRule::Kind::kFramePointer);
    if (full->registers[kReturnAddress].kind != FullRule::Kind::kExpression)
      return CompactRule(CompactRule::Kind::kEnd);
    if (const auto compact = Compact(*full)) return *compact;
    const std::unique_lock lock(full_mutex_);
    full_rules_.push_back(std::move(*full));
    return CompactRule(CompactRule::Kind::kFull,
                       static_cast<std::uint32_t>(full_rules_.size() - 1));
  }

  std::optional<FullRule> ReadFromModule(const Module& module, std::uint64_t address,
                                         const MemoryReader& memory) {
    const auto [at, is_new] = unwindables_.try_emplace(module.index);
    Unwindable& unwindable = at->second;
    if (is_new) {
      unwindable.image = ModuleImage::Open(module, memory, kDebugDirectory);
      if (unwindable.image != nullptr)
        unwindable.eh_frame = dwarf_getcfi_elf(unwindable.image->file().elf());
    }
    if (unwindable.image == nullptr) return std::nullopt;
    auto rule = ReadFrom(unwindable.eh_frame, address);
    if (rule) return rule;
    if (!unwindable.debug_frame_sought) {
      unwindable.debug_frame_sought = true;
      if (unwindable.image->HasDebugFrame())
        unwindable.debug_frame = dwarf_getcfi(unwindable.image->dwarf());
    }
    return ReadFrom(unwindable.debug_frame, address);
  }

  static std::optional<FullRule> ReadFrom(Dwarf_CFI* information, std::uint64_t address) {
    Dwarf_Frame* frame = nullptr;
    if (information == nullptr || dwarf_cfi_addrframe(information, address, &frame) != 0)
      return std::nullopt;
    auto rule = ReadRule(frame);
    std::free(frame);
    return rule;
  }

  // From `frame` to `caller`; `cfa` is set as far as it is known.
  bool Step(CompactRule rule, const FrameRegisters& frame, bool is_return_address,
            const MemoryReader& memory, StackWindow& stack, FrameRegisters& caller,
            std::uint64_t& cfa) {
    switch (rule.kind()) {
      case CompactRule::Kind::kRegular:
        return StepRegular(rule, frame, stack, caller, cfa);
      case CompactRule::Kind::kFull:
        return Full(rule).Apply(frame, stack.reader(), caller, cfa);
      case CompactRule::Kind::kSignal:
        caller = frame;
        return ReadSignalContext(frame[kRsp], stack, caller);
      case CompactRule::Kind::kFramePointer:
        return StepByFramePointer(frame, is_return_address, memory, stack, caller, cfa);
      case CompactRule::Kind::kUnknown:
      case CompactRule::Kind::kEnd:
      case CompactRule::Kind::kNoCode:
        return false;
    }
    return false;
  }

  // The reference stays valid.
  const FullRule& Full(CompactRule rule) {
    const std::unique_lock lock(full_mutex_);
    return full_rules_[rule.index()];
  }

  bool IsSignalFrame(CompactRule rule) {
    return rule.kind() == CompactRule::Kind::kSignal ||
           (rule.kind() == CompactRule::Kind::kFull && Full(rule).is_signal_frame);
  }

  static bool StepRegular(CompactRule rule, const FrameRegisters& frame, StackWindow& stack,
                          FrameRegisters& caller, std::uint64_t& cfa) {
    cfa = frame[rule.cfa_register()] + static_cast<std::uint64_t>(rule.cfa_offset());
    caller = frame;
    caller[kRsp] = cfa;
    if (!stack.Read(cfa - 8, &caller[kReturnAddress], 8)) return false;
    std::uint32_t saved = rule.saved();
    for (int which = 0; saved != 0; ++which, saved >>= 4) {
      const std::uint64_t words = saved & 15;
      if (words != 0 && !stack.Read(cfa - 8 - 8 * words, &caller[CompactRule::kSaved[which]], 8)) {
        return false;
      }
    }
    return true;
  }

  // Code nobody describes: first what the instruction at hand says of a function that has no frame
  // yet or any more, then rbp as a frame pointer, then a leaf function without one.
  bool StepByFramePointer(const FrameRegisters& frame, bool is_return_address,
                          const MemoryReader& memory, StackWindow& stack, FrameRegisters& caller,
                          std::uint64_t& cfa) {
    caller = frame;
    const std::uint64_t rsp = frame[kRsp], rbp = frame[kRbp];
    if (!is_return_address) {
      const int pushed = WordsAboveReturnAddress(frame[kReturnAddress], memory);
      if (pushed >= 0) {
        const auto words = static_cast<std::uint64_t>(pushed);
        if (!stack.Read(rsp + 8 * words, &caller[kReturnAddress], 8)) return false;
        if (words == 1 && !stack.Read(rsp, &caller[kRbp], 8)) return false;
        caller[kRsp] = cfa = rsp + 8 * words + 8;
        return FollowsCall(caller[kReturnAddress], memory);
      }
    }
    std::uint64_t saved[2];
    if (rbp >= rsp && rbp % 8 == 0 && stack.Read(rbp, saved, sizeof saved) &&
        FollowsCall(saved[1], memory)) {
      caller[kRbp] = saved[0];
      caller[kReturnAddress] = saved[1];
      caller[kRsp] = cfa = rbp + 16;
      return true;
    }
    if (is_return_address || !stack.Read(rsp, saved, 8) || !FollowsCall(saved[0], memory))
      return false;
    caller[kReturnAddress] = saved[0];
    caller[kRsp] = cfa = rsp + 8;
    return true;
  }

  // How many words lie on the stack above the return address at an instruction that begins or ends
  // a function, or is a linkage stub: 0 or 1; -1 if this is no such instruction.
  static int WordsAboveReturnAddress(std::uint64_t pc, const MemoryReader& memory) {
    unsigned char code[4] = {};
    if (!memory(pc, code, sizeof code) && !memory(pc, code, 1)) return -1;
    switch (code[0]) {
      case 0x55:  // push %rbp
      case 0xc3:  // ret
      case 0xc2:  // ret imm16
        return 0;
      case 0xff:
        return code[1] == 0x25 ? 0 : -1;  // jmp *slot
      case 0xf2:
        return code[1] == 0xff || code[1] == 0xc3 ? 0 : -1;  // the same, notrack or bnd
      case 0xf3:                                             // endbr64, rep ret
        return (code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa) || code[1] == 0xc3 ? 0 : -1;
      case 0x48:  // mov %rsp, %rbp in both encodings
        return (code[1] == 0x89 && code[2] == 0xe5) || (code[1] == 0x8b && code[2] == 0xec) ? 1
                                                                                            : -1;
      default:
        return -1;
    }
  }

  // Whether `address` is executable and comes after a call instruction: E8 rel32, or FF /2 with any
  // operand (2 to 7 bytes).
  bool FollowsCall(std::uint64_t address, const MemoryReader& memory) {
    constexpr int kLongest = 7;
    unsigned char code[kLongest + 1] = {};
    if (address < kCodePage || address >> 47 != 0 || !memory(address - kLongest, code, kLongest)) {
      return false;
    }
    const bool is_direct = code[2] == 0xe8;
    const auto is_indirect = [&](int length) {
      const unsigned char* at = code + kLongest - length;
      if (at[0] != 0xff || (at[1] >> 3 & 7) != 2) return false;
      const int mode = at[1] >> 6, operand = at[1] & 7;
      const bool has_sib = mode != 3 && operand == 4;
      int expected = 2 + (has_sib ? 1 : 0);
      if (mode == 1) expected += 1;
      if (mode == 2 || (mode == 0 && operand == 5) || (mode == 0 && has_sib && (at[2] & 7) == 5))
        expected += 4;
      return expected == length;
    };
    return (is_direct || is_indirect(2) || is_indirect(3) || is_indirect(4) || is_indirect(6) ||
            is_indirect(7)) &&
           modules_.IsExecutable(address - 1);
  }

  Modules& modules_;
  RuleTable rules_;
  std::mutex mutex_;                                 // for all below, and for writing rules_
  std::set<std::uint64_t> code_pages_;               // with rules
  std::map<std::uint32_t, Unwindable> unwindables_;  // by module index
  std::mutex full_mutex_;
  std::deque<FullRule> full_rules_;
};

Unwinder::Unwinder(Modules& modules) : implementation_(std::make_unique<Implementation>(modules)) {}

Unwinder::~Unwinder() = default;

std::size_t Unwinder::Unwind(const UnwindRegisters& registers, const MemoryReader& memory,
                             std::span<std::uint64_t> pcs) {
  return implementation_->Walk(registers, memory, pcs.size(),
                               [&](std::size_t at, const StackFrame& frame) {
                                 pcs[at] = frame.pc + (at != 0 && !frame.is_return_address ? 1 : 0);
                               });
}

std::size_t Unwinder::UnwindFrames(const UnwindRegisters& registers, const MemoryReader& memory,
                                   std::span<StackFrame> frames) {
  return implementation_->Walk(
      registers, memory, frames.size(),
      [&](std::size_t at, const StackFrame& frame) { frames[at] = frame; });
}

void Unwinder::OnUnmap(std::uint64_t begin, std::uint64_t end) {
  implementation_->OnUnmap(begin, end);
}

}  // namespace trapline
