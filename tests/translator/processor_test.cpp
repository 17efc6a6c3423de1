// The table of memory effects against the processor: every encoding it executes runs with its
// operand at the edge of a page that may not be touched, or may not be written. The page fault's
// error code tells read or write, its address and the edge tell which bytes. Which addresses it
// refuses altogether is compared, too.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/translator/corpus.h"
#include "translator/instruction.h"
#include "translator/memory_access.h"

// Saved host state, and what the trampoline loads; used from the assembly below.
extern "C" {
std::uint64_t g_host_rsp;
std::uint64_t g_guest_registers[16];
std::uint64_t g_guest_flags;
std::uint64_t g_result_flags;
std::uint64_t g_result_rax;
unsigned char* g_xsave_image;
std::uint64_t g_entry;
void RunGuest();
extern const char GuestExit[];
}

// Loads every register, jumps to g_entry; the code there jumps to GuestExit, which forgets the
// guest's registers.
asm(R"(
  .text
  .globl RunGuest, GuestExit
RunGuest:
  push %rbx
  push %rbp
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, g_host_rsp(%rip)
  mov g_xsave_image(%rip), %rcx
  mov $-1, %eax
  mov $-1, %edx
  and $0xe7, %eax
  xor %edx, %edx
  xrstor64 (%rcx)
  lea g_guest_registers(%rip), %rax
  mov 8(%rax), %rcx
  mov 16(%rax), %rdx
  mov 24(%rax), %rbx
  mov 40(%rax), %rbp
  mov 48(%rax), %rsi
  mov 56(%rax), %rdi
  mov 64(%rax), %r8
  mov 72(%rax), %r9
  mov 80(%rax), %r10
  mov 88(%rax), %r11
  mov 96(%rax), %r12
  mov 104(%rax), %r13
  mov 112(%rax), %r14
  mov 120(%rax), %r15
  pushq g_guest_flags(%rip)
  popfq
  mov 32(%rax), %rsp
  mov (%rax), %rax
  jmp *g_entry(%rip)
GuestExit:
  mov g_host_rsp(%rip), %rsp
  cld
  pushq $0x202
  popfq
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbp
  pop %rbx
  ret
)");

namespace trapline {
namespace {

constexpr std::uint64_t kPage = 4096;

struct Outcome {
  enum Kind { kCompleted, kPageFault, kProtection, kIllegal, kOther } kind = kCompleted;
  std::uint64_t address = 0;
  bool write = false;
};
Outcome g_outcome;

void OnSignal(int number, siginfo_t*, void* context) {
  auto* state = static_cast<ucontext_t*>(context);
  auto& registers = state->uc_mcontext.gregs;
  constexpr int kGeneralProtection = 13;
  constexpr int kPageFault = 14;
  // A fault elsewhere comes after the instruction: it was a jump into nowhere.
  if (static_cast<std::uint64_t>(registers[REG_RIP]) != g_entry) {
    g_outcome.kind = Outcome::kCompleted;
  } else if (number == SIGSEGV && registers[REG_TRAPNO] == kPageFault) {
    g_outcome.kind = Outcome::kPageFault;
    g_outcome.address = static_cast<std::uint64_t>(registers[REG_CR2]);
    g_outcome.write = (registers[REG_ERR] & 2) != 0;
  } else if (registers[REG_TRAPNO] == kGeneralProtection || number == SIGBUS) {
    g_outcome.kind = Outcome::kProtection;
  } else if (number == SIGILL) {
    g_outcome.kind = Outcome::kIllegal;
  } else {
    g_outcome.kind = Outcome::kOther;  // division, debug: after the operand was read
  }
  registers[REG_RIP] = reinterpret_cast<std::int64_t>(GuestExit);
  // Virtual machines were met that cannot go back to a program whose rsp is no address.
  registers[REG_RSP] = static_cast<std::int64_t>(g_host_rsp);
  registers[REG_EFL] = 0x202;
}

// Memory: none | arena | none | read-only arena | none, each part 4 pages, and code.
class Machine {
 public:
  static constexpr std::uint64_t kArenaSize = 4 * kPage;

  Machine() {
    auto* all = static_cast<unsigned char*>(Map(5 * kArenaSize, PROT_NONE));
    arena_ = all + kArenaSize;
    read_only_ = all + 3 * kArenaSize;
    mprotect(arena_, kArenaSize, PROT_READ | PROT_WRITE);
    mprotect(read_only_, kArenaSize, PROT_READ);
    scratch_ = static_cast<unsigned char*>(Map(kArenaSize, PROT_READ | PROT_WRITE));
    code_ = static_cast<unsigned char*>(Map(kPage, PROT_READ | PROT_WRITE | PROT_EXEC));
    image_ = static_cast<unsigned char*>(Map(kArenaSize, PROT_READ | PROT_WRITE));
    g_xsave_image = image_;
    auto* stack = static_cast<unsigned char*>(Map(16 * kPage, PROT_READ | PROT_WRITE));
    stack_t alternate{};
    alternate.ss_sp = stack;
    alternate.ss_size = 16 * kPage;
    sigaltstack(&alternate, nullptr);
    struct sigaction action {};
    action.sa_sigaction = OnSignal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (const int number : {SIGSEGV, SIGILL, SIGFPE, SIGTRAP, SIGBUS})
      sigaction(number, &action, nullptr);
  }

  unsigned char* arena() const { return arena_; }
  unsigned char* read_only() const { return read_only_; }
  unsigned char* scratch() const { return scratch_; }
  unsigned char* image() const { return image_; }

  // The instruction, then a jump out. At the end of the code page's first half, so that
  // rip-relative operands miss.
  void Load(std::span<const std::uint8_t> instruction) {
    unsigned char* at = code_ + 1024;
    std::memcpy(at, instruction.data(), instruction.size());
    at += instruction.size();
    const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};  // jmp *0(%rip)
    std::memcpy(at, jump, sizeof jump);
    const void* exit = GuestExit;
    std::memcpy(at + sizeof jump, &exit, sizeof exit);
    g_entry = reinterpret_cast<std::uint64_t>(code_ + 1024);
  }

  Outcome Run(const RegisterFile& registers) {
    std::memcpy(g_guest_registers, registers.gpr, sizeof g_guest_registers);
    g_guest_flags = registers.rflags;
    g_outcome = {};
    RunGuest();
    return g_outcome;
  }

 private:
  static void* Map(std::uint64_t size, int protection) {
    void* memory = mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return memory;
  }

  unsigned char* arena_ = nullptr;
  unsigned char* read_only_ = nullptr;
  unsigned char* scratch_ = nullptr;
  unsigned char* code_ = nullptr;
  unsigned char* image_ = nullptr;
};

// Instructions that would change what the test itself stands on.
bool IsExcluded(const Instruction& instruction) {
  if (instruction.encoding != Encoding::kLegacy) return false;
  const std::uint8_t reg = instruction.modrm >> 3 & 7;
  if (instruction.segment != Segment::kNone) return true;  // own test
  if (instruction.map == kMapOneByte) {
    switch (instruction.opcode) {
      case 0x8e:
        return reg >= 4;  // fs, gs
      case 0x9d:          // popf may set the trap flag
      case 0xca:
      case 0xcb:
      case 0xcf:
        return true;
      case 0xff:
        return reg == 3 || reg == 5;  // far
      default:
        return false;
    }
  }
  if (instruction.map == kMap0F) {
    switch (instruction.opcode) {
      case 0x00:
      case 0x01:
        return instruction.modrm != 0xfc;  // the kernel emulates some of them
      case 0xa1:
      case 0xa9:
      case 0xb4:
      case 0xb5:
        return true;  // fs, gs
      default:
        return false;
    }
  }
  return false;
}

// Page faults that are no access to data. Each was seen on a processor; the bytes that are written
// are checked apart.
bool MayAlsoFault(const Instruction& instruction, const RegisterFile& registers,
                  const Outcome& outcome) {
  const bool legacy = instruction.encoding == Encoding::kLegacy;
  // enter asks for write access at the new rsp before it pushes (SDM vol. 2, ENTER), and writes
  // nothing there.
  if (legacy && instruction.map == kMapOneByte && instruction.opcode == 0xc8) {
    return outcome.write && outcome.address + 0x10400 > registers.gpr[kRsp] &&
           outcome.address < registers.gpr[kRsp];
  }
  // maskmovq and maskmovdqu with a mask of zeros may fault: "implementation specific" (SDM vol. 2).
  if (instruction.map == kMap0F && instruction.opcode == 0xf7 &&
      instruction.encoding != Encoding::kEvex)
    return outcome.write;
  // Masked vextract stores: exception class E6NF, no fault suppression (SDM vol. 2, VEXTRACTF128).
  if (instruction.map == kMap0F3A && instruction.encoding == Encoding::kEvex) {
    const std::uint8_t opcode = instruction.opcode;
    return (opcode == 0x19 || opcode == 0x1b || opcode == 0x39 || opcode == 0x3b) && outcome.write;
  }
  return false;
}

// Page faults that only some processors have. With a 16-bit operand movsxd reads two bytes on
// Intel's (seen on model 207) and four on AMD's; the table says four. No compiler emits it.
bool MayNotFault(const Instruction& instruction) {
  constexpr std::uint8_t kRexW = 8;
  return instruction.encoding == Encoding::kLegacy && instruction.map == kMapOneByte &&
         instruction.opcode == 0x63 && instruction.operand_size_prefix &&
         (instruction.rex & kRexW) == 0;
}

class ProcessorTest : public ::testing::Test {
 protected:
  ProcessorTest() : random_(20260) {}

  std::uint64_t Random() { return random_(); }

  // Vector registers with random sign bits and small indices, masks with random bits.
  void FillImage(unsigned variant) {
    unsigned char* image = machine_.image();
    std::memset(image, 0, Machine::kArenaSize);
    // What the processor itself saves tells where things are.
    unsigned eax = 0xe7;
    unsigned edx = 0;
    asm volatile("xsave64 %0" : "+m"(*image) : "a"(eax), "d"(edx) : "memory");
    const std::uint16_t control = 0x37f;
    const std::uint32_t mxcsr = 0x1f80;
    std::memset(image, 0, 512);
    std::memcpy(image, &control, 2);
    std::memcpy(image + 24, &mxcsr, 4);
    // Registers of even number hold small indices, the others bytes with or without sign.
    const auto fill = [&](unsigned offset, unsigned size, unsigned stride) {
      for (unsigned i = 0; i < size; i += 4) {
        auto value = static_cast<std::uint32_t>(Random());
        if (variant == 0) value &= 0x7f7f7f7f;
        if (variant == 1) value |= 0x80808080;
        // As 8-byte indices their upper half is zero, in the last variant all of a negative
        // number's.
        if (i / stride % 2 == 0) value = i % 8 == 0 ? value & 0x3f : variant == 3 ? ~0u : 0;
        std::memcpy(image + offset + i, &value, 4);
      }
    };
    for (unsigned i = 0; i < 8; ++i) fill(32 + 16 * i, 8, 8);  // MMX
    fill(160, 256, 16);
    std::uint64_t present = 3;
    for (const unsigned component : {2u, 6u, 7u}) {
      unsigned size = 0;
      unsigned offset = 0;
      unsigned ecx = 0;
      asm("cpuid" : "=a"(size), "=b"(offset), "=c"(ecx), "=d"(edx) : "a"(0xd), "c"(component));
      if (size == 0) continue;
      fill(offset, size, component == 2 ? 16 : component == 6 ? 32 : 64);
      present |= 1ull << component;
    }
    unsigned size = 0;
    unsigned offset = 0;
    unsigned ecx = 0;
    asm("cpuid" : "=a"(size), "=b"(offset), "=c"(ecx), "=d"(edx) : "a"(0xd), "c"(5));
    if (size != 0) {
      for (unsigned k = 0; k < 8; ++k) {
        const std::uint64_t mask = variant == 0 ? 0 : variant == 1 ? ~0ull : Random();
        std::memcpy(image + offset + 8 * k, &mask, 8);
      }
      present |= 1u << 5;
    }
    std::memcpy(image + 512, &present, 8);
    std::memset(image + 520, 0, 56);
  }

  // Runs the instruction with register `moved` so that boundary after boundary falls on the edge.
  void Check(const Instruction& instruction, const EncodedBytes& bytes);
  void CheckAt(const Instruction& instruction, const EncodedBytes& bytes,
               const RegisterFile& registers, bool read_only);

  void CheckWrittenBytes(const Instruction& instruction, const EncodedBytes& bytes,
                         RegisterFile registers, std::uint8_t moved);
  void CheckRefusals(const Instruction& instruction, const EncodedBytes& bytes,
                     RegisterFile registers, std::uint8_t moved);

  void Fail(const Instruction& instruction, const EncodedBytes& bytes, const std::string& what) {
    std::string hex;
    char text[8];
    for (unsigned i = 0; i < instruction.length; ++i) {
      std::snprintf(text, sizeof text, "%02x ", bytes[i]);
      hex += text;
    }
    ++failures_;
    // One line for each opcode is enough.
    std::snprintf(text, sizeof text, "%x%x%x", static_cast<unsigned>(instruction.encoding),
                  instruction.map, instruction.opcode);
    if (failed_.insert(text).second) ADD_FAILURE() << hex << what;
  }

  Machine machine_;
  std::mt19937_64 random_;
  unsigned long long runs_ = 0;
  unsigned long long faults_ = 0;
  unsigned long long failures_ = 0;
  unsigned long long byte_checks_ = 0;
  unsigned long long refusals_ = 0;
  bool illegal_ = false;
  bool refused_ = false;
  std::set<std::string> failed_;
};

std::string Text(const MemoryAccessList& accesses, std::uint64_t base) {
  std::string text;
  for (const MemoryAccess& access : accesses) {
    text += std::string(" ") + (access.read ? "r" : "-") + (access.write ? "w" : "-");
    text += std::to_string(access.size) + "@";
    text += std::to_string(static_cast<std::int64_t>(access.address - base));
  }
  return text;
}

bool IsMapped(std::uint64_t address) {
  char byte = 0;
  const iovec to{&byte, 1};
  const iovec from{reinterpret_cast<void*>(address), 1};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
}

void ProcessorTest::CheckAt(const Instruction& instruction, const EncodedBytes& bytes,
                            const RegisterFile& registers, bool read_only) {
  const MemoryAccessList accesses = Accesses(instruction, registers);
  const auto arena = reinterpret_cast<std::uint64_t>(machine_.arena());
  const auto frozen = reinterpret_cast<std::uint64_t>(machine_.read_only());
  const auto scratch = reinterpret_cast<std::uint64_t>(machine_.scratch());
  // Allowed to all: the arena and the scratch memory; to reads the read-only arena.
  const auto forbidden = [&](std::uint64_t address, bool write) {
    const auto in = [&](std::uint64_t start) {
      return address >= start && address < start + Machine::kArenaSize;
    };
    return !in(arena) && !in(scratch) && (write || !in(frozen));
  };
  // Around the arenas there is nothing: what falls there, nearly all, need not be asked for.
  const auto around = [&](std::uint64_t address) {
    return address >= arena - Machine::kArenaSize && address < arena + 4 * Machine::kArenaSize;
  };
  const std::uint64_t edge_base = read_only ? frozen : arena;
  bool expect_fault = false;
  for (const MemoryAccess& access : accesses) {
    for (const std::uint64_t edge : {access.address, access.address + access.size - 1}) {
      if (!forbidden(edge, access.write)) continue;
      expect_fault = true;
      // Bit strings, whose offset may be an address, reach anywhere, to the test's own memory, too.
      if (forbidden(edge, false) && !around(edge) && IsMapped(edge)) return;
    }
  }
  const Outcome outcome = machine_.Run(registers);
  ++runs_;
  switch (outcome.kind) {
    case Outcome::kIllegal:
      illegal_ = true;
      return;
    case Outcome::kProtection:
      refused_ = true;
      return;
    case Outcome::kPageFault: {
      ++faults_;
      bool explained = false;
      for (const MemoryAccess& access : accesses) {
        const bool inside =
            outcome.address >= access.address && outcome.address < access.address + access.size;
        // An operand that is read and written is asked for with write intent.
        if (inside && forbidden(outcome.address, access.write) && outcome.write == access.write)
          explained = true;
      }
      if (!explained && !MayAlsoFault(instruction, registers, outcome)) {
        Fail(instruction, bytes,
             std::string("faults at a ") + (outcome.write ? "write" : "read") + " of offset " +
                 std::to_string(static_cast<std::int64_t>(outcome.address - edge_base)) +
                 "; expected" + Text(accesses, edge_base));
      }
      return;
    }
    case Outcome::kCompleted:
    case Outcome::kOther:
      if (expect_fault && !MayNotFault(instruction)) {
        Fail(instruction, bytes, "does not fault; expected" + Text(accesses, edge_base));
      }
  }
}

// Runs the instruction over memory full of one value, then of another: bytes that come out equal
// were written. Only for instructions that write without reading what they write; of others, that
// they change no byte outside.
void ProcessorTest::CheckWrittenBytes(const Instruction& instruction, const EncodedBytes& bytes,
                                      RegisterFile registers, std::uint8_t moved) {
  unsigned char* arena = machine_.arena();
  constexpr std::uint64_t kSize = Machine::kArenaSize;
  registers.gpr[moved] = reinterpret_cast<std::uint64_t>(arena) + kSize / 2;
  std::vector<unsigned char> results[2];
  constexpr unsigned char kFills[] = {0x2a, 0x55};
  for (unsigned i = 0; i < 2; ++i) {
    std::memset(arena, kFills[i], kSize);
    if (machine_.Run(registers).kind != Outcome::kCompleted) return;
    results[i].assign(arena, arena + kSize);
  }
  std::memset(arena, 0, kSize);
  std::vector<unsigned char> predicted(kSize);
  bool exact = true;
  for (const MemoryAccess& access : Accesses(instruction, registers)) {
    if (access.read && access.address < reinterpret_cast<std::uint64_t>(arena) + kSize &&
        access.address + access.size > reinterpret_cast<std::uint64_t>(arena))
      exact = false;
    if (!access.write) continue;
    for (std::uint64_t i = 0; i < access.size; ++i) {
      const std::uint64_t offset = access.address + i - reinterpret_cast<std::uint64_t>(arena);
      if (offset < kSize) predicted[offset] = 1;
    }
  }
  // fxsave and xsave leave reserved bytes and components in their initial state alone.
  if (instruction.map == kMap0F && (instruction.opcode == 0xae || instruction.opcode == 0xc7))
    exact = false;
  for (std::uint64_t i = 0; i < kSize; ++i) {
    // Most is neither written nor predicted.
    constexpr std::uint64_t kStep = 64;
    const auto all = [i](const std::vector<unsigned char>& of, unsigned char value) {
      return std::all_of(&of[i], &of[i] + kStep, [=](auto byte) { return byte == value; });
    };
    if (i % kStep == 0 && all(predicted, 0) && all(results[0], kFills[0]) &&
        all(results[1], kFills[1])) {
      i += kStep - 1;
      continue;
    }
    const bool written = exact ? results[0][i] == results[1][i]
                               : results[0][i] != kFills[0] || results[1][i] != kFills[1];
    if (written == (predicted[i] != 0) || (!exact && !written)) continue;
    Fail(instruction, bytes,
         std::string(written ? "writes" : "does not write") + " byte " +
             std::to_string(static_cast<std::int64_t>(i - kSize / 2)) + " from its base");
    return;
  }
  ++byte_checks_;
}

// Runs the instruction with addresses that are more and less aligned, and with one that is none.
void ProcessorTest::CheckRefusals(const Instruction& instruction, const EncodedBytes& bytes,
                                  RegisterFile registers, std::uint8_t moved) {
  std::uint64_t& address = registers.gpr[moved];
  address = reinterpret_cast<std::uint64_t>(machine_.arena()) + Machine::kArenaSize / 2;
  const MemoryAccessList accesses = Accesses(instruction, registers);
  if (accesses.size() == 0) return;
  const std::uint64_t aligned = address - accesses[0].address % 64;
  const auto is_refused = [&] {
    std::memset(machine_.arena(), 0, Machine::kArenaSize);
    const Outcome::Kind kind = machine_.Run(registers).kind;
    illegal_ = kind == Outcome::kIllegal;
    return kind == Outcome::kProtection;
  };
  address = aligned;
  // For another reason: what is privileged, or wants more than zeros.
  if (RefusalOf(instruction, registers) == Refusal::kNone && is_refused()) return;
  if (illegal_) return;
  for (const std::uint64_t offset : {0, 1, 2, 4, 8, 16, 32}) {
    address = aligned + offset;
    const bool refused = is_refused();
    refusals_ += refused;
    if (refused == (RefusalOf(instruction, registers) != Refusal::kNone)) continue;
    Fail(instruction, bytes,
         (refused ? "refuses an address that is off by " : "takes an address that is off by ") +
             std::to_string(offset));
    return;
  }
  address = 1ull << 63;
  if (Accesses(instruction, registers).size() == 0) return;  // none of this register
  const bool refused = is_refused();
  refusals_ += refused;
  if (refused != (RefusalOf(instruction, registers) != Refusal::kNone))
    Fail(instruction, bytes, "an address that is not canonical");
}

void ProcessorTest::Check(const Instruction& instruction, const EncodedBytes& bytes) {
  std::set<std::uint8_t> movable;
  for (const MemoryOperand& operand : instruction.memory()) {
    if (operand.base < 16) movable.insert(operand.base);
  }
  machine_.Load({bytes.data(), instruction.length});
  illegal_ = false;
  const auto scratch = reinterpret_cast<std::uint64_t>(machine_.scratch());
  for (const std::uint8_t moved : movable) {
    for (unsigned variant = 0; variant < 4 && !illegal_; ++variant) {
      const bool has_mask =
          instruction.vector_length != 0 &&
          std::any_of(instruction.memory().begin(), instruction.memory().end(),
                      [](const MemoryOperand& o) {
                        return o.mask != MaskKind::kNone || o.pattern == Pattern::kGather;
                      });
      if (!has_mask && variant > 0) break;
      FillImage(variant);
      RegisterFile registers;
      registers.xsave = machine_.image();
      registers.rip = g_entry;
      registers.rflags = 0x202;
      for (unsigned i = 0; i < 16; ++i) registers.gpr[i] = scratch + 2 * kPage;
      registers.gpr[kRcx] =
          instruction.repeat == Repeat::kRepe || instruction.repeat == Repeat::kRepne
              ? 1
              : 3;                 // string count, bit offset, shift count
      registers.gpr[kRax] = 0xe7;  // xsave's components, xlat's index, dividend
      registers.gpr[kRdx] = 0;
      if (movable.contains(kRax)) registers.gpr[kRax] = scratch + 2 * kPage;
      CheckWrittenBytes(instruction, bytes, registers, moved);
      if (!has_mask) CheckRefusals(instruction, bytes, registers, moved);
      // What the instruction touches with the register at 0, as offsets from it.
      registers.gpr[moved] = scratch + 2 * kPage;
      std::set<std::int64_t> edges = {0};
      for (const MemoryAccess& access : Accesses(instruction, registers)) {
        const auto start = static_cast<std::int64_t>(access.address - registers.gpr[moved]);
        const auto end = start + static_cast<std::int64_t>(access.size);
        // Those of other registers are elsewhere.
        if (std::abs(start) > 2 * std::int64_t{kPage}) continue;
        for (const std::int64_t edge : {start - 1, start, start + 1, end - 1, end, end + 1})
          edges.insert(edge);
      }
      // Lanes that are off have edges too.
      for (const MemoryOperand& operand : instruction.memory()) {
        if (operand.pattern != Pattern::kLanes && operand.pattern != Pattern::kCompressed) continue;
        for (unsigned lane = 0; lane <= operand.element_count; ++lane)
          edges.insert(operand.displacement + lane * operand.element_size);
      }
      for (const std::int64_t edge : edges) {
        if (illegal_) return;
        for (const bool read_only : {false, true}) {
          const auto base =
              reinterpret_cast<std::uint64_t>(read_only ? machine_.read_only() : machine_.arena());
          // The edge at the end of the arena, and at its start.
          registers.gpr[moved] = base + Machine::kArenaSize - static_cast<std::uint64_t>(edge);
          CheckAt(instruction, bytes, registers, read_only);
          if (illegal_) return;
          registers.gpr[moved] = base - static_cast<std::uint64_t>(edge);
          CheckAt(instruction, bytes, registers, read_only);
        }
      }
    }
  }
}

TEST_F(ProcessorTest, EveryEncoding) {
  std::map<std::string, unsigned> opcodes;
  unsigned long long executed = 0;
  unsigned long long not_here = 0;
  // One form of ModRM for each: what matters is the operand's size and direction.
  const auto check = [&](const EncodedBytes& bytes) {
    const auto instruction = Decode(bytes, 0x1000);
    if (!instruction || instruction->operand_count == 0 || !instruction->effects_known ||
        IsExcluded(*instruction))
      return;
    if (instruction->modrm_is_memory()) {
      const bool gather = instruction->operands[0].pattern == Pattern::kGather;
      const unsigned form = instruction->modrm & 0xc7;
      if (gather ? form >> 6 != 1
                 : form != (instruction->encoding == Encoding::kEvex ? 0x41 : 0x03))
        return;
    } else if (instruction->has_modrm && (instruction->modrm & 0xc7) != 0xc2 &&
               instruction->modrm != 0xfc) {
      return;
    }
    if (instruction->length > 0 && instruction->encoding == Encoding::kLegacy &&
        instruction->address_size_prefix)
      return;
    // ModRM.reg is a register like any other, but for those opcodes that it is part of.
    const bool group = instruction->encoding == Encoding::kLegacy ||
                       (instruction->opcode & 0xfc) == 0x70 || instruction->opcode == 0xae ||
                       instruction->opcode == 0xf3 || instruction->encoding == Encoding::kXop;
    if (!group && (instruction->modrm >> 3 & 7) > 1) return;
    // Without ModRM the corpus repeats the same bytes: take each once.
    const std::string key(bytes.begin(), bytes.begin() + instruction->length);
    if (opcodes[key]++ != 0) return;
    Check(*instruction, bytes);
    ++(illegal_ ? not_here : executed);
  };
  ForEachLegacyEncoding(check);
  ForEachVexEncoding(check);
  ForEachEvexEncoding(check);
  ForEachXopEncoding(check);
  ForEach3dNowEncoding(check);
  std::printf(
      "%llu encodings executed, %llu not on this processor, %llu runs, %llu page faults, %llu "
      "checks of written bytes, %llu addresses refused, %llu differences\n",
      executed, not_here, runs_, faults_, byte_checks_, refusals_, failures_);
  EXPECT_GT(executed, 2000u);
}

// Addresses without base in memory, and cut to 32 bits: the fault's address is the processor's own
// sum.
TEST_F(ProcessorTest, Addresses) {
  FillImage(0);
  RegisterFile registers;
  for (unsigned i = 0; i < 16; ++i) registers.gpr[i] = 0x100000000ull * i + 0x10 * i;
  registers.rflags = 0x202;
  registers.xsave = machine_.image();
  const std::vector<EncodedBytes> loads = {
      {0x8b, 0x04, 0x25, 0x00, 0x08, 0x00, 0x00},        // mov 0x800, %eax
      {0x67, 0x8b, 0x04, 0x75, 0x00, 0x08, 0x00, 0x00},  // mov 0x800(,%esi,2), %eax
      {0x67, 0x43, 0x8b, 0x04, 0x75, 0x00, 0x08, 0x00,
       0x00},  // the same with r14d, and REX.B without base
      {0x43, 0x8b, 0x04, 0x75, 0x00, 0x08, 0x00, 0x00},  // 64 bits of r14
      {0x67, 0x8b, 0x43, 0xf0},                          // mov -16(%ebx), %eax
      {0x67, 0x8b, 0x46, 0x80},                          // mov -128(%esi), %eax: wraps at 32 bits
      {0x42, 0x8b, 0x04, 0x20},                          // mov (%rax,%r12), %eax: r12 is an index
      {0x67, 0xac},                                      // lods (%esi)
      {0xa1, 0x00, 0x01, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00},  // mov 0x100000100, %eax
      {0x8f, 0x04, 0x24},                                      // pop (%rsp)
  };
  for (const EncodedBytes& bytes : loads) {
    const auto instruction = Decode(bytes, 0);
    ASSERT_TRUE(instruction);
    machine_.Load({bytes.data(), instruction->length});
    registers.rip = g_entry;
    const unsigned long long before = faults_;
    CheckAt(*instruction, bytes, registers, false);
    EXPECT_EQ(faults_, before + 1)
        << static_cast<int>(bytes[0]) << " " << static_cast<int>(bytes[1]);
  }
  EXPECT_EQ(failures_, 0u);
}

}  // namespace
}  // namespace trapline
