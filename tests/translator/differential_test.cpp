// Every encoding that touches memory, and random sequences of them, natively and in the code cache:
// the same registers, flags, memory, vector state and faults, and the accesses that Accesses
// foretells.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/translator/corpus.h"
#include "tests/translator/tracer.h"
#include "translator/code_cache.h"

extern "C" {
std::uint64_t g_native_registers[16];  // in and out
std::uint64_t g_native_flags;
std::uint64_t g_native_entry;
std::uint64_t g_native_host_rsp;
unsigned char* g_native_image;  // in and out
std::uint64_t g_native_stack[64];
void RunNativeCode();
extern const char NativeStop[];
}

asm(R"(
  .text
  .globl RunNativeCode, NativeStop
RunNativeCode:
  push %rbx
  push %rbp
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, g_native_host_rsp(%rip)
  mov g_native_image(%rip), %rcx
  mov $0xe7, %eax
  xor %edx, %edx
  xrstor64 (%rcx)
  pushq g_native_flags(%rip)
  popfq
  mov g_native_registers(%rip), %rax
  mov g_native_registers+8(%rip), %rcx
  mov g_native_registers+16(%rip), %rdx
  mov g_native_registers+24(%rip), %rbx
  mov g_native_registers+32(%rip), %rsp
  mov g_native_registers+40(%rip), %rbp
  mov g_native_registers+48(%rip), %rsi
  mov g_native_registers+56(%rip), %rdi
  mov g_native_registers+64(%rip), %r8
  mov g_native_registers+72(%rip), %r9
  mov g_native_registers+80(%rip), %r10
  mov g_native_registers+88(%rip), %r11
  mov g_native_registers+96(%rip), %r12
  mov g_native_registers+104(%rip), %r13
  mov g_native_registers+112(%rip), %r14
  mov g_native_registers+120(%rip), %r15
  jmp *g_native_entry(%rip)
NativeStop:
  mov %rax, g_native_registers(%rip)
  mov %rcx, g_native_registers+8(%rip)
  mov %rdx, g_native_registers+16(%rip)
  mov %rbx, g_native_registers+24(%rip)
  mov %rsp, g_native_registers+32(%rip)
  mov %rbp, g_native_registers+40(%rip)
  mov %rsi, g_native_registers+48(%rip)
  mov %rdi, g_native_registers+56(%rip)
  mov %r8, g_native_registers+64(%rip)
  mov %r9, g_native_registers+72(%rip)
  mov %r10, g_native_registers+80(%rip)
  mov %r11, g_native_registers+88(%rip)
  mov %r12, g_native_registers+96(%rip)
  mov %r13, g_native_registers+104(%rip)
  mov %r14, g_native_registers+112(%rip)
  mov %r15, g_native_registers+120(%rip)
  lea g_native_stack+512(%rip), %rsp
  pushfq
  popq g_native_flags(%rip)
  pushq $0x202
  popfq
  mov g_native_image(%rip), %rcx
  mov $0xe7, %eax
  xor %edx, %edx
  xsave64 (%rcx)
  mov g_native_host_rsp(%rip), %rsp
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

constexpr std::uint64_t kArenaSize = 65536;
constexpr std::uint64_t kGap = 1u << 20;
constexpr std::uint64_t kCodeSize = 4u << 20;  // little, so that addresses are used again
constexpr std::uint64_t kAllSize = kCodeSize + kArenaSize + 3 * kGap;
constexpr std::uint64_t kCodeStep = 512;
constexpr std::uint32_t kRounds = 40;  // of the blocks of a sequence with branches
constexpr std::uint64_t kStatusFlags = 0x8d5;
constexpr std::uint64_t kDirection = 0x400;
using Image = std::vector<unsigned char>;

struct Fault {
  int number = 0;  // signal; 0: none
  std::uint64_t trap = 0;
  std::uint64_t address = 0;
  bool write = false;
  RegisterFile registers;  // at the fault
};
Fault g_fault;
sigjmp_buf g_after_fault;

void OnFault(int number, siginfo_t*, void* context) {
  const auto* state = static_cast<const ucontext_t*>(context);
  const auto& from = state->uc_mcontext.gregs;
  g_fault.number = number;
  g_fault.trap = static_cast<std::uint64_t>(from[REG_TRAPNO]);
  // A non-canonical address based on rsp or rbp is #SS; with a gs prefix, as in the cache, #GP.
  // Whoever delivers the fault to the program knows its instruction and turns it back.
  constexpr std::uint64_t kStackFault = 12;
  constexpr std::uint64_t kGeneralProtection = 13;
  if (g_fault.trap == kStackFault) {
    g_fault.number = SIGSEGV;
    g_fault.trap = kGeneralProtection;
  }
  constexpr std::uint64_t kPageFault = 14;
  g_fault.address = g_fault.trap == kPageFault ? static_cast<std::uint64_t>(from[REG_CR2]) : 0;
  g_fault.write = g_fault.trap == kPageFault && (from[REG_ERR] & 2) != 0;
  static constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                   REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                   REG_R12, REG_R13, REG_R14, REG_R15};
  for (unsigned i = 0; i < 16; ++i)
    g_fault.registers.gpr[i] = static_cast<std::uint64_t>(from[kOrder[i]]);
  g_fault.registers.rip = static_cast<std::uint64_t>(from[REG_RIP]);
  g_fault.registers.rflags = static_cast<std::uint64_t>(from[REG_EFL]);
  siglongjmp(g_after_fault, 1);
}

// What is left after a run.
struct Outcome {
  Fault fault;
  RegisterFile registers;
  Image image;
  std::vector<unsigned char> arena;
  std::vector<TracedAccess> accesses;
  CodeCache::RunResult result = CodeCache::RunResult::kStopped;
};

unsigned ComponentOffset(unsigned component, unsigned* size) {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  asm("cpuid" : "=a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx) : "a"(0xd), "c"(component));
  *size = eax;
  return ebx;
}

class Differential : public ::testing::Test {
 protected:
  Differential() : random_(77) {
    // Below 2 GiB, so that addresses cut to 32 bits are the same.
    auto* all = static_cast<unsigned char*>(
        mmap(nullptr, kAllSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_32BIT,
             -1, 0));
    if (all == MAP_FAILED) throw std::bad_alloc();
    code_ = all + kGap;
    arena_ = code_ + kCodeSize + kGap;
    mprotect(code_, kCodeSize, PROT_READ | PROT_WRITE | PROT_EXEC);
    mprotect(arena_, kArenaSize, PROT_READ | PROT_WRITE);
    // Far from what sequences may touch.
    rounds_left_ = reinterpret_cast<std::uint32_t*>(code_ - 4096);
    mprotect(rounds_left_, 4096, PROT_READ | PROT_WRITE);
    image_.resize(CacheThread::kXsaveSize);
    native_image_ = static_cast<unsigned char*>(std::aligned_alloc(64, CacheThread::kXsaveSize));
    g_native_image = native_image_;
    stack_t alternate{};
    alternate.ss_sp = signal_stack_;
    alternate.ss_size = sizeof signal_stack_;
    sigaltstack(&alternate, nullptr);
    struct sigaction action {};
    action.sa_sigaction = OnFault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (const int number : {SIGSEGV, SIGILL, SIGFPE, SIGBUS, SIGTRAP})
      sigaction(number, &action, nullptr);
    initial_arena_.resize(kArenaSize);
  }
  ~Differential() override {
    std::free(native_image_);
    munmap(code_ - kGap, kAllSize);
  }

  std::uint64_t Random() { return random_(); }
  std::uint64_t Middle() const { return reinterpret_cast<std::uint64_t>(arena_) + kArenaSize / 2; }

  // Registers that point into the arena; those with a bit in `small` hold a small number.
  RegisterFile RandomRegisters(std::uint16_t small, bool aligned) {
    RegisterFile registers;
    for (unsigned i = 0; i < 16; ++i) {
      registers.gpr[i] = Middle() + (Random() % 4096 & ~(aligned ? 63ull : 0ull));
      if ((small >> i & 1) != 0) registers.gpr[i] = Random() % 64;
    }
    registers.gpr[kRsp] = Middle() + 8192 + (Random() % 64) * 8;
    registers.gpr[kRcx] = (small & 2) != 0 ? Random() % 9 : registers.gpr[kRcx];
    registers.rflags = 0x202 | (Random() & kStatusFlags) | (Random() % 8 == 0 ? kDirection : 0);
    return registers;
  }

  void RandomImage() {
    std::fill(image_.begin(), image_.end(), 0);
    const std::uint16_t control = 0x37f;
    const std::uint32_t mxcsr = 0x1f80;
    std::memcpy(image_.data(), &control, 2);
    std::memcpy(image_.data() + 24, &mxcsr, 4);
    // Half of the elements small, as indices, and half anything.
    const auto fill = [&](unsigned offset, unsigned size) {
      for (unsigned i = 0; i < size; i += 4) {
        auto value = static_cast<std::uint32_t>(Random());
        if (i / 16 % 2 == 0) value &= 0x1ff;
        std::memcpy(image_.data() + offset + i, &value, 4);
      }
    };
    fill(160, 256);
    std::uint64_t present = 3;
    for (const unsigned component : {2u, 5u, 6u, 7u}) {
      unsigned size = 0;
      const unsigned offset = ComponentOffset(component, &size);
      if (size == 0) continue;
      fill(offset, size);
      present |= 1ull << component;
    }
    std::memcpy(image_.data() + 512, &present, 8);
  }

  void RandomArena() {
    for (std::size_t i = 0; i < kArenaSize; i += 8) {
      std::uint64_t value = Random();
      if (value % 4 == 0) value &= 0xffff;
      std::memcpy(initial_arena_.data() + i, &value, 8);
    }
  }

  // Puts the instructions at a fresh address, then a jump to the stop; the address.
  std::uint64_t Place(std::span<const std::uint8_t> bytes) {
    code_used_ += kCodeStep;
    if (code_used_ + kCodeStep > kCodeSize) {
      code_used_ = 0;
      FlushCaches();
    }
    unsigned char* at = code_ + code_used_;
    std::memcpy(at, bytes.data(), bytes.size());
    at += bytes.size();
    const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};
    std::memcpy(at, jump, sizeof jump);
    const void* const stop = NativeStop;
    std::memcpy(at + sizeof jump, &stop, sizeof stop);
    stop_jump_ = reinterpret_cast<std::uint64_t>(at);
    return reinterpret_cast<std::uint64_t>(code_ + code_used_);
  }

  // Other code is about to be where some was before.
  virtual void FlushCaches() {
    if (cache_) cache_->Flush();
  }

  Outcome Natively(std::uint64_t entry, const RegisterFile& registers) {
    std::memcpy(arena_, initial_arena_.data(), kArenaSize);
    *rounds_left_ = kRounds;
    std::memcpy(native_image_, image_.data(), image_.size());
    std::memcpy(g_native_registers, registers.gpr, sizeof g_native_registers);
    g_native_flags = registers.rflags;
    g_native_entry = entry;
    g_fault = {};
    Outcome outcome;
    if (sigsetjmp(g_after_fault, 1) == 0) {
      RunNativeCode();
      outcome.registers = registers;
      std::memcpy(outcome.registers.gpr, g_native_registers, sizeof g_native_registers);
      outcome.registers.rflags = g_native_flags;
      outcome.image.assign(native_image_, native_image_ + CacheThread::kXsaveSize);
    }
    ResetHost();
    outcome.fault = g_fault;
    outcome.arena.assign(arena_, arena_ + kArenaSize);
    return outcome;
  }

  Outcome InCache(std::uint64_t entry, const RegisterFile& initial) {
    std::memcpy(arena_, initial_arena_.data(), kArenaSize);
    *rounds_left_ = kRounds;
    RecordedAccesses().clear();
    g_fault = {};
    Outcome outcome;
    RegisterFile registers = initial;
    registers.rip = entry;
    registers.xsave = image_.data();
    if (sigsetjmp(g_after_fault, 1) == 0) {
      outcome.result = cache_->Run(registers, reinterpret_cast<std::uint64_t>(NativeStop));
      outcome.registers = registers;
      outcome.image.assign(registers.xsave, registers.xsave + CacheThread::kXsaveSize);
    }
    ResetHost();
    outcome.fault = g_fault;
    outcome.arena.assign(arena_, arena_ + kArenaSize);
    outcome.accesses = RecordedAccesses();
    return outcome;
  }

  static void ResetHost() {
    const std::uint32_t mxcsr = 0x1f80;
    asm volatile("fninit; ldmxcsr %0; cld" ::"m"(mxcsr));
  }

  // Components in their initial state are zeros; addresses of x87 instructions differ by nature.
  static Image Normalized(const Image& image) {
    Image result(image);
    std::uint64_t present = 0;
    std::memcpy(&present, image.data() + 512, 8);
    const auto clear = [&](unsigned offset, unsigned size) {
      std::fill_n(result.begin() + offset, size, 0);
    };
    clear(6, 18);
    clear(28, 4);
    clear(416, 96);
    clear(512, 64);
    if ((present & 1) == 0) {
      clear(0, 6);
      clear(32, 128);
      result[0] = 0x7f;
      result[1] = 3;
    }
    for (unsigned i = 0; i < 8; ++i) clear(32 + 16 * i + 10, 6);
    if ((present & 2) == 0) clear(160, 256);
    for (const unsigned component : {2u, 5u, 6u, 7u}) {
      unsigned size = 0;
      const unsigned offset = ComponentOffset(component, &size);
      if ((present >> component & 1) == 0) clear(offset, size);
    }
    unsigned size = 0;
    const unsigned offset = ComponentOffset(7, &size);
    const unsigned end = size == 0 ? 832 : offset + size;
    std::fill(result.begin() + end, result.end(), 0);
    return result;
  }

  // Empty if the same.
  std::string Compare(const Outcome& native, const Outcome& cached, const RegisterFile& initial,
                      bool flags_too) {
    static constexpr const char* kNames[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                             "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                             "r12", "r13", "r14", "r15"};
    char text[200];
    if (native.fault.number != cached.fault.number) {
      std::snprintf(text, sizeof text, "signal %d natively, %d cached at %#lx", native.fault.number,
                    cached.fault.number, cached.fault.registers.rip);
      return text;
    }
    if (cached.result != CodeCache::RunResult::kStopped) return "did not run to its end";
    RegisterFile after = cached.registers;
    RegisterFile expected = native.registers;
    if (native.fault.number != 0) {
      if (native.fault.address != cached.fault.address ||
          native.fault.write != cached.fault.write || native.fault.trap != cached.fault.trap) {
        std::snprintf(text, sizeof text, "fault %lu at %#lx %d natively, %lu at %#lx %d cached",
                      native.fault.trap, native.fault.address, native.fault.write,
                      cached.fault.trap, cached.fault.address, cached.fault.write);
        return text;
      }
      const auto recovered = cache_->Recover(cached.fault.registers, cache_->thread());
      if (!recovered) return "cannot recover the registers at a fault";
      after = *recovered;
      expected = native.fault.registers;
      if (after.rip != expected.rip) {
        std::snprintf(text, sizeof text, "recovered rip %#lx is not %#lx", after.rip, expected.rip);
        return text;
      }
      static_cast<void>(initial);
    }
    for (unsigned i = 0; i < 16; ++i) {
      if (after.gpr[i] == expected.gpr[i]) continue;
      std::snprintf(text, sizeof text, "%s is %#lx natively, %#lx cached (before: %#lx)", kNames[i],
                    expected.gpr[i], after.gpr[i], initial.gpr[i]);
      return text;
    }
    constexpr std::uint64_t kCompared = kStatusFlags | kDirection;
    if (flags_too && ((after.rflags ^ expected.rflags) & kCompared) != 0) {
      std::snprintf(text, sizeof text, "flags are %#lx natively, %#lx cached", expected.rflags,
                    after.rflags);
      return text;
    }
    if (native.arena != cached.arena) {
      const auto at =
          std::mismatch(native.arena.begin(), native.arena.end(), cached.arena.begin()).first -
          native.arena.begin();
      std::snprintf(text, sizeof text, "memory differs at arena + %#lx",
                    static_cast<std::uint64_t>(at));
      return text;
    }
    if (native.fault.number == 0) {
      const Image ours = Normalized(cached.image);
      const Image theirs = Normalized(native.image);
      if (ours != theirs) {
        const auto at =
            std::mismatch(theirs.begin(), theirs.end(), ours.begin()).first - theirs.begin();
        std::snprintf(text, sizeof text, "vector state differs at %#lx",
                      static_cast<std::uint64_t>(at));
        return text;
      }
    }
    return "";
  }

  static bool AreSame(const Outcome& first, const Outcome& second) {
    return first.fault.number == second.fault.number && first.arena == second.arena &&
           first.image == second.image &&
           std::memcmp(first.registers.gpr, second.registers.gpr, sizeof first.registers.gpr) ==
               0 &&
           std::memcmp(first.fault.registers.gpr, second.fault.registers.gpr,
                       sizeof first.registers.gpr) == 0 &&
           first.registers.rflags == second.registers.rflags &&
           first.fault.registers.rflags == second.fault.registers.rflags;
  }

  static std::string Hex(std::span<const std::uint8_t> bytes) {
    std::string hex;
    char text[4];
    for (const std::uint8_t byte : bytes) {
      std::snprintf(text, sizeof text, "%02x ", byte);
      hex += text;
    }
    return hex;
  }

  // Not for this test: other than memory is at stake, or the outcome is by nature another one.
  static bool IsSuitable(const Instruction& in) {
    if (in.branch != Branch::kNone || !in.effects_known) return false;
    if (in.operand_count == 0 && !in.modrm_is_memory()) return false;
    if (in.segment == Segment::kFs) return false;  // thread-local storage: the test's own
    if (in.encoding != Encoding::kLegacy) return true;
    const std::uint8_t reg = in.modrm >> 3 & 7;
    if (in.map == kMapOneByte) {
      switch (in.opcode) {
        case 0x6c:
        case 0x6d:
        case 0x6e:
        case 0x6f:
        case 0x8c:
        case 0x8e:
        case 0x9d:
        case 0xc8:
          return false;
        case 0xd9:
          return reg != 6;  // fnstenv, fnsave: addresses of instructions
        case 0xdd:
          return reg != 6;
        default:
          return true;
      }
    }
    if (in.map == kMap0F) {
      switch (in.opcode) {
        case 0x00:
        case 0x01:
          return in.modrm == 0xfc;
        case 0xa0:
        case 0xa1:
        case 0xa8:
        case 0xa9:
        case 0xb2:
        case 0xb4:
        case 0xb5:
          return false;
        case 0xae:
          return in.opcode == 0xae && reg != 0 && reg != 4 &&
                 reg != 6;  // fxsave, xsave: the same addresses
        case 0xc7:
          return reg == 1;
        default:
          return true;
      }
    }
    return !(in.map == kMap0F38 && in.opcode == 0xf8);
  }

  // What the cache leaves to its driver: 16-bit stack operations, string instructions with 32-bit
  // addresses.
  static bool IsStepped(const Instruction& in) {
    const bool string = in.operand_count != 0 && in.operands[0].pattern == Pattern::kRepeated;
    if (string) return in.address_size_prefix || in.segment != Segment::kNone;
    if (!in.has_modrm && in.segment != Segment::kNone) return true;  // xlat, moffs
    return std::any_of(in.memory().begin(), in.memory().end(), [](const MemoryOperand& operand) {
      const bool stack = operand.implicit && (operand.base == kRsp || operand.base == kRbp);
      return (stack && operand.size != 8) ||
             (operand.segment != Segment::kNone && operand.implicit) ||
             (operand.segment != Segment::kNone && operand.pattern == Pattern::kGather);
    });
  }

  // Reaches 256 MiB around its base, beyond what the test restores.
  static bool IsBitString(const Instruction& in) {
    return in.operand_count != 0 && in.operands[0].pattern == Pattern::kBitString;
  }

  // Addresses cut to 32 bits are anywhere in the lower 4 GiB, now and then in other memory of this
  // process, which no run puts back. Around the arena nothing else is.
  bool ReachesOtherMemory(const Instruction& in, const RegisterFile& registers) const {
    const auto from = reinterpret_cast<std::uint64_t>(arena_) - kGap;
    const auto to = reinterpret_cast<std::uint64_t>(arena_) + kArenaSize + kGap;
    const auto is_mapped = [](std::uint64_t address) {
      unsigned char resident = 0;
      return mincore(reinterpret_cast<void*>(address & ~4095ull), 4096, &resident) == 0;
    };
    for (const MemoryAccess& access : Accesses(in, registers)) {
      const std::uint64_t last = access.address + access.size - 1;
      if (access.address >= from && last < to) continue;
      if (is_mapped(access.address) || is_mapped(last)) return true;
    }
    return false;
  }

  // The filler's displacement replaced by one that keeps addresses in the arena.
  void PatchDisplacement(EncodedBytes& bytes, const Instruction& in, std::uint64_t rip) const {
    if (in.displacement_size != 4) return;
    std::int32_t displacement = 0x40;
    const bool rip_relative = (in.modrm & 0xc7) == 5;
    if (rip_relative) displacement = static_cast<std::int32_t>(Middle() - (rip + in.length));
    std::memcpy(bytes.data() + in.displacement_offset, &displacement, 4);
  }

  void MakeCache(TranslatorOptions options) {
    const TranslatorOptions recording = RecordingOptions();
    options.read_code = recording.read_code;
    options.save_vector_state = true;
    if (options.handler == nullptr) options.handler = recording.handler;
    options.code_size = 32u << 20;
    options.max_instructions = 64;
    cache_ = std::make_unique<CodeCache>(options);
    // Where the kernel itself is a paravirtual guest, a page fault while RSP is not canonical ends
    // in SIGSEGV, and sequences load RSP with anything.
    auto* const thread = &cache_->thread();
    const std::uint64_t into_page = reinterpret_cast<std::uint64_t>(thread) % 4096;
    ASSERT_EQ(0, madvise(reinterpret_cast<char*>(thread) - into_page, into_page + sizeof *thread,
                         MADV_POPULATE_WRITE));
  }

  // All suitable encodings of the corpus, every `stride`-th. Made once for all tests of a process,
  // most of which take less time than it does.
  const std::vector<std::vector<std::uint8_t>>& Pool(unsigned stride) {
    static std::map<unsigned, std::vector<std::vector<std::uint8_t>>> pools;
    auto& pool = pools[stride];
    if (!pool.empty()) return pool;
    unsigned count = 0;
    std::string last;
    const auto add = [&](const EncodedBytes& bytes) {
      const auto in = Decode(bytes, 0x1000);
      if (!in || !IsSuitable(*in)) return;
      const std::string key(bytes.begin(), bytes.begin() + in->length);
      if (key == last) return;
      last = key;
      if (count++ % stride == 0) pool.emplace_back(bytes.begin(), bytes.end());
    };
    ForEachLegacyEncoding(add);
    ForEachVexEncoding(add);
    ForEachEvexEncoding(add);
    return pool;
  }

  unsigned Stride(unsigned normally) const {
    return std::getenv("TRAPLINE_FULL") != nullptr ? 1 : normally;
  }

  std::mt19937_64 random_;
  unsigned char* code_ = nullptr;
  std::uint64_t code_used_ = 0;
  std::uint64_t stop_jump_ = 0;
  std::uint32_t* rounds_left_ = nullptr;
  unsigned char* arena_ = nullptr;
  unsigned char* native_image_ = nullptr;
  Image image_;
  std::vector<unsigned char> initial_arena_;
  std::unique_ptr<CodeCache> cache_;
  alignas(64) unsigned char signal_stack_[65536];
};

TEST_F(Differential, EveryEncoding) {
  MakeCache({});
  unsigned long long run = 0;
  unsigned long long faults = 0;
  unsigned long long illegal = 0;
  unsigned long long stepped = 0;
  unsigned long long elsewhere = 0;
  unsigned long long failures = 0;
  RandomArena();
  for (const auto& original : Pool(Stride(37))) {
    EncodedBytes bytes{};
    std::copy(original.begin(), original.end(), bytes.begin());
    const auto length = Decode(bytes, 0x1000)->length;
    const std::uint64_t entry = Place({bytes.data(), length});
    PatchDisplacement(bytes, *Decode(bytes, entry), entry);
    std::memcpy(reinterpret_cast<void*>(entry), bytes.data(), length);
    const auto in = Decode({bytes.data(), length}, entry);
    ASSERT_TRUE(in);
    RandomImage();
    const bool string = !in->modrm_is_memory() && in->operand_count != 0;
    // rsi and r14 are the corpus's index registers, rcx counts.
    std::uint16_t small = string ? 1u << kRcx : Random() % 2 == 0 ? 1u << kRsi | 1u << 14 : 0;
    if (IsBitString(*in)) small = static_cast<std::uint16_t>(1u << in->reg());
    const RegisterFile registers = RandomRegisters(small, Random() % 4 != 0);
    RegisterFile before = registers;
    before.rip = entry;
    before.xsave = image_.data();
    if (ReachesOtherMemory(*in, before)) {
      ++elsewhere;
      continue;
    }
    const Outcome native = Natively(entry, registers);
    if (native.fault.number == SIGILL) {
      ++illegal;
      continue;
    }
    const Outcome cached = InCache(entry, registers);
    if (cached.result != CodeCache::RunResult::kStopped) {
      EXPECT_TRUE(IsStepped(*in)) << Hex({bytes.data(), length});
      ++stepped;
      continue;
    }
    ++run;
    faults += native.fault.number != 0;
    std::string difference = Compare(native, cached, registers, true);
    if (difference.empty() && native.fault.number == 0 && in->operand_count != 0) {
      std::vector<TracedAccess> expected;
      for (MemoryAccess access : Accesses(*in, before)) {
        if (OnlyReadsMemory(*in)) access.write = access.atomic = false;  // told as a load
        expected.push_back({entry, access});
      }
      std::vector<TracedAccess> actual = cached.accesses;
      // The jump to the stop reads its target.
      std::erase_if(actual, [&](const TracedAccess& access) { return access.rip != entry; });
      // Comparing strings go on after the first element.
      if (in->repeat == Repeat::kRepe || in->repeat == Repeat::kRepne)
        actual.resize(std::min(actual.size(), expected.size()));
      if (actual != expected)
        difference = "other accesses: " + (actual.empty() ? "none" : Text(actual[0])) +
                     ", expected " + (expected.empty() ? "none" : Text(expected[0]));
    }
    if (!difference.empty() && ++failures <= 60)
      ADD_FAILURE() << Hex({bytes.data(), length}) << difference;
  }
  std::printf(
      "%llu encodings run, %llu of them fault, %llu stepped, %llu not on this processor, %llu "
      "reach other memory, %llu differ\n",
      run, faults, stepped, illegal, elsewhere, failures);
  EXPECT_GT(run, 5000u);
  EXPECT_EQ(failures, 0u);
}

// Random sequences of two to six instructions.
class Sequences : public Differential {
 protected:
  using Bytes = std::vector<std::uint8_t>;

  // Up to `count` random instructions behind `sequence`, which will be at `entry`.
  void Append(const std::vector<Bytes>& pool, std::uint64_t count, std::uint64_t entry,
              Bytes* sequence) {
    for (std::uint64_t n = 0; n < count; ++n) {
      EncodedBytes bytes{};
      const auto& chosen = pool[Random() % pool.size()];
      std::copy(chosen.begin(), chosen.end(), bytes.begin());
      const std::uint64_t rip = entry + sequence->size();
      PatchDisplacement(bytes, *Decode(bytes, rip), rip);
      const auto in = Decode(bytes, rip);
      // What must be stepped ends a run in the cache.
      if (!in || IsStepped(*in) || IsBitString(*in)) continue;
      sequence->insert(sequence->end(), bytes.begin(), bytes.begin() + in->length);
    }
  }
  Bytes StraightOn(const std::vector<Bytes>& pool, std::uint64_t entry) {
    Bytes sequence;
    Append(pool, 2 + Random() % 5, entry, &sequence);
    return sequence;
  }
  // Four to ten instructions, most of which access memory by the same register, at known distances
  // from it, or push and pop.
  Bytes WithOneBase(const std::vector<Bytes>& pool, std::uint64_t entry) {
    static constexpr std::uint8_t kStack[][4] = {{0x50},
                                                 {0x53},
                                                 {0x41, 0x54},
                                                 {0x58},
                                                 {0x5d},
                                                 {0x41, 0x5e},
                                                 {0x48, 0x83, 0xec, 0x18},
                                                 {0x48, 0x83, 0xc4, 0x10}};
    static constexpr std::size_t kLengths[] = {1, 1, 2, 1, 1, 2, 4, 4};
    Bytes sequence;
    std::uint8_t base = kNoRegister;
    for (std::uint64_t left = 4 + Random() % 7; left > 0; --left) {
      if (Random() % 3 == 0) {
        const std::uint64_t i = Random() % std::size(kStack);
        sequence.insert(sequence.end(), kStack[i], kStack[i] + kLengths[i]);
        continue;
      }
      Bytes next;
      for (unsigned tries = 0; tries < 200; ++tries) {
        next.clear();
        Append(pool, 1, entry + sequence.size(), &next);
        const auto in = Decode(next, entry + sequence.size());
        if (!in || !in->modrm_is_memory() || in->index != kNoRegister || in->base >= 16) continue;
        if (base == kNoRegister) base = in->base;
        if (in->base == base || Random() % 100 == 0) break;
      }
      sequence.insert(sequence.end(), next.begin(), next.end());
    }
    return sequence;
  }
  // Two to six blocks of random instructions, each followed by a conditional jump to any of them.
  // The run ends after kRounds blocks.
  Bytes WithBranches(const std::vector<Bytes>& pool, std::uint64_t entry) {
    Bytes sequence;
    const auto append = [&](std::initializer_list<std::uint8_t> opcode, std::int64_t displacement) {
      sequence.insert(sequence.end(), opcode);
      for (unsigned i = 0; i < 4; ++i)
        sequence.push_back(static_cast<std::uint8_t>(displacement >> (8 * i)));
    };
    std::vector<std::size_t> begins(2 + Random() % 5);
    std::vector<std::pair<std::size_t, std::size_t>> jumps;  // end, block
    for (std::size_t& begin : begins) {
      begin = sequence.size();
      constexpr unsigned kLength = 7;
      append({0x83, 0x2d}, reinterpret_cast<std::int64_t>(rounds_left_) -
                               static_cast<std::int64_t>(entry + sequence.size() + kLength));
      sequence.push_back(1);    // subl $1, rounds_left
      append({0x0f, 0x88}, 0);  // js to the end
      jumps.emplace_back(sequence.size(), begins.size());
      Append(pool, 1 + Random() % 3, entry, &sequence);
      append({0x0f, static_cast<std::uint8_t>(0x80 | Random() % 16)}, 0);
      jumps.emplace_back(sequence.size(), Random() % begins.size());
    }
    begins.push_back(sequence.size());
    for (const auto& [end, block] : jumps) {
      const auto displacement = static_cast<std::int32_t>(begins[block] - end);
      std::memcpy(sequence.data() + end - 4, &displacement, 4);
    }
    return sequence;
  }

  // `with_faults`: sequences that fault natively are compared too.
  enum class Form { kStraightOn, kBranches, kOneBase };
  void Run(unsigned count, bool with_faults, Form form = Form::kStraightOn) {
    const auto& pool = Pool(11);
    unsigned long long run = 0;
    unsigned long long faults = 0;
    unsigned long long failures = 0;
    unsigned long long not_repeatable = 0;
    unsigned long long illegal = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (i % 64 == 0) {
        RandomArena();
        RandomImage();
      }
      const std::uint64_t entry = Place({});
      const auto sequence = form == Form::kBranches  ? WithBranches(pool, entry)
                            : form == Form::kOneBase ? WithOneBase(pool, entry)
                                                     : StraightOn(pool, entry);
      if (sequence.empty()) continue;
      code_used_ -= kCodeStep;
      Place(sequence);
      // rsi and r14 are mostly indices, rcx now and then a count.
      std::uint16_t small = Random() % 8 != 0 ? 1u << kRsi | 1u << 14 : 0;
      if (Random() % 4 == 0) small |= 1u << kRcx;
      const RegisterFile registers = RandomRegisters(small, Random() % 4 != 0);
      const Outcome native = Natively(entry, registers);
      // This processor may not have an instruction of it.
      if (native.fault.number == SIGILL) ++illegal;
      if (native.fault.number == SIGILL || (native.fault.number != 0 && !with_faults)) continue;
      ++run;
      faults += native.fault.number != 0;
      const std::string difference = DifferenceInCache(entry, registers, native);
      if (!difference.empty() && !IsRepeatable(entry, registers, native)) {
        ++not_repeatable;
        continue;
      }
      if (!difference.empty() && ++failures <= 20) ADD_FAILURE() << Hex(sequence) << difference;
    }
    std::printf("%llu sequences, %llu of them fault, %llu not repeatable, %llu differ\n", run,
                faults, not_repeatable, failures);
    EXPECT_LT(not_repeatable, run / 500 + 2);
    EXPECT_GT(run, (count - illegal) / 20);
    EXPECT_EQ(failures, 0u);
  }
  // Empty if there is none.
  std::string DifferenceInCache(std::uint64_t entry, const RegisterFile& registers,
                                const Outcome& native) {
    const Outcome cached = InCache(entry, registers);
    std::string difference = Compare(native, cached, registers, true);
    if (difference.empty() && told_of_) difference = told_of_(entry, registers);
    if (cached.fault.number != 0 && !difference.empty()) {
      char text[64];
      std::snprintf(text, sizeof text, ", cached fault at %#lx", cached.fault.address);
      difference += text;
    }
    return difference;
  }
  // A sequence may compute an address that lies in other memory of this process, which no run puts
  // back, unless the next one does so by chance, as with xor: hence an odd number of runs each
  // time.
  bool IsRepeatable(std::uint64_t entry, const RegisterFile& registers, const Outcome& first) {
    constexpr unsigned kTimes = 4;
    for (unsigned i = 0; i < kTimes; ++i) {
      if (!AreSame(first, Natively(entry, registers)) ||
          !AreSame(first, Natively(entry, registers)) ||
          DifferenceInCache(entry, registers, first).empty()) {
        return false;
      }
    }
    return true;
  }
  // What else must hold; empty if it does.
  std::function<std::string(std::uint64_t entry, const RegisterFile& registers)> told_of_;

  unsigned Count() const { return std::getenv("TRAPLINE_FULL") != nullptr ? 1000000 : 20000; }
};

TEST_F(Sequences, EveryAccessToTheHandler) {
  MakeCache({});
  Run(Count(), true);
}

TEST_F(Sequences, Branches) {
  MakeCache({});
  Run(Count(), true, Form::kBranches);
}

TEST_F(Sequences, FramesAndFinishedAtomics) {
  TranslatorOptions options;
  options.shadow_stack = true;
  options.after_atomic = true;
  options.is_atomic = [](std::uint64_t rip) { return rip % 3 == 0; };
  MakeCache(options);
  Run(Count(), true);
}

TEST_F(Sequences, OnlyRewritten) {
  TranslatorOptions options;
  options.instrument = [](std::uint64_t) { return Instrument::kNone; };
  MakeCache(options);
  Run(Count(), true);
}

// Stores of one or two words are compared with what is there, wherever constants are near by. What
// faults does so by that load.
TablePointers AnyWords() {
  return {[](std::uint64_t address, std::uint64_t& word) {
            word = address;
            return true;
          },
          [](std::uint64_t) { return true; }};
}

TEST_F(Sequences, TablePointers) {
  TranslatorOptions options;
  options.table_pointers = AnyWords();
  MakeCache(options);
  Run(2 * Count(), false, Form::kBranches);
}

// The filter: the handler lets every second access be skipped from then on.
CodeCache* g_filtered = nullptr;
unsigned long long g_handled = 0;
void HandleAndFilter(const AccessSite* site, std::uint64_t address, const RegisterFile*) {
  ++g_handled;
  if (site->instruction != nullptr || (address >> 3 & 1) != 0) return;
  unsigned index = 7;
  for (unsigned i = 0; i < 7; ++i) {
    if (site->size == 1u << i) index = i;
  }
  CacheThread& thread = g_filtered->thread();
  thread.filter[site->write ? 1 : 0][CacheThread::FilterOffset(address, site->size) / 8] =
      thread.signature[index] + address;
}
class FilteredSequences : public Sequences {
 protected:
  std::unique_ptr<CodeCache> all_told_;
  std::uint64_t left_out_ = 0;

  void FlushCaches() override {
    Sequences::FlushCaches();
    if (all_told_) all_told_->Flush();
  }

  // Hot code, run once more: an access to sectors that are not settled that it does not tell of,
  // nor of another one to the same bytes.
  std::string MissingOf(std::uint64_t entry, const RegisterFile& registers,
                        const std::uint8_t* uses) {
    const Outcome told = InCache(entry, registers);
    std::swap(cache_, all_told_);
    const Outcome all = InCache(entry, registers);
    std::swap(cache_, all_told_);
    const auto is_settled = [&](std::uint64_t address) {
      return uses[static_cast<std::uint32_t>(address) >> 9] != 0;
    };
    for (const TracedAccess& access : all.accesses) {
      const MemoryAccess& memory = access.access;
      // Whether those move is another test's matter.
      constexpr std::size_t kLongest = 15;
      const auto in =
          Decode({reinterpret_cast<const std::uint8_t*>(access.rip), kLongest}, access.rip);
      if (in && IsConditionalMove(*in)) continue;
      if (is_settled(memory.address) || is_settled(memory.address + memory.size - 1)) {
        ++left_out_;
        continue;
      }
      const bool is_told =
          std::any_of(told.accesses.begin(), told.accesses.end(), [&](const TracedAccess& other) {
            return other.access.address == memory.address && other.access.size == memory.size &&
                   (other.access.write || !memory.write);
          });
      if (!is_told) return "not told of: " + Text(access);
    }
    return "";
  }

  void MakeFilteredCache(TranslatorOptions options) {
    options.filter = true;
    MakeCache(options);
    g_filtered = cache_.get();
    g_handled = 0;
    for (unsigned i = 0; i < 8; ++i)
      cache_->thread().signature[i] = (8ull + i) << CacheThread::kSignatureShift;
  }
  void WithFilter(Form form, const TablePointers& table_pointers = {}) {
    TranslatorOptions options;
    options.handler = HandleAndFilter;
    options.table_pointers = table_pointers;
    MakeFilteredCache(options);
    Run(Count(), false, form);
    EXPECT_GT(g_handled, 1000u);
  }
  // Hot code need not tell of every second sector; with areas it has to ask again for each.
  // `partly`: every third place is as it was.
  void WithSectors(Form form, bool areas = false, bool partly = false) {
    constexpr std::size_t kUses = 1u << 23, kStates = 2, kAreaBits = 12;
    constexpr std::size_t kAreas = std::size_t{1} << (32 - kAreaBits);
    void* const memory = mmap(nullptr, kUses + kStates + kAreas, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto* const uses = static_cast<std::uint8_t*>(memory);
    for (std::size_t i = 0; i < kUses; i += 2) uses[i] = 1;
    uses[kUses + 1] = 1;
    TranslatorOptions options;
    options.handler = [](const AccessSite* site, std::uint64_t at, const RegisterFile* registers) {
      ++g_handled;
      if (site->instruction == nullptr) site->leaves_out = 1;
      RecordingOptions().handler(site, at, registers);
    };
    const auto address = reinterpret_cast<std::uint64_t>(uses);
    options.leaving_out = {address, address + kUses, 9, 0};
    if (areas) {
      options.leaving_out->area_uses = address + kUses + kStates;
      options.leaving_out->area_bits = kAreaBits;
    }
    if (partly) {
      options.instrument = [](std::uint64_t rip) {
        return rip % 3 == 0 ? Instrument::kNone : Instrument::kCheck;
      };
    }
    // The same with every access told.
    TranslatorOptions all;
    all.instrument = options.instrument;
    MakeCache(all);
    all_told_ = std::move(cache_);
    MakeFilteredCache(options);
    told_of_ = [&](std::uint64_t entry, const RegisterFile& registers) {
      return MissingOf(entry, registers, uses);
    };
    Run(Count(), false, form);
    EXPECT_GT(g_handled, 1000u);
    EXPECT_GT(left_out_, 1000u);
    all_told_.reset();
    cache_.reset();
    munmap(memory, kUses + kStates + kAreas);
  }
};

// Of a cmov it is told if it moves, and of what follows in any case.
TEST_F(FilteredSequences, ConditionalMoves) {
  TranslatorOptions options;
  options.handler = RecordingOptions().handler;
  MakeFilteredCache(options);
  unsigned moved = 0;
  for (unsigned i = 0; i < 1600; ++i) {
    const auto condition = static_cast<std::uint8_t>(i % 16);
    // cmov (%rbx), %rcx; mov (%rbx), %rdx
    const Bytes sequence = {0x48, 0x0f, static_cast<std::uint8_t>(0x40 | condition), 0x0b, 0x48,
                            0x8b, 0x13};
    const std::uint64_t entry = Place(sequence);
    const RegisterFile registers = RandomRegisters(0, true);
    const Outcome cached = InCache(entry, registers);
    EXPECT_EQ(Compare(Natively(entry, registers), cached, registers, true), "");
    const auto times = [&](std::uint64_t rip) {
      return std::ranges::count_if(cached.accesses, [&](const TracedAccess& access) {
        return access.rip == rip && access.access.address == registers.gpr[kRbx];
      });
    };
    const bool moves = ConditionHolds(condition, registers.rflags);
    EXPECT_EQ(times(entry), moves ? 1 : 0) << unsigned{condition};
    EXPECT_EQ(times(entry + 4), 1) << unsigned{condition};
    moved += moves;
  }
  EXPECT_GT(moved, 400u);
}

TEST_F(FilteredSequences, Filter) { WithFilter(Form::kStraightOn); }
TEST_F(FilteredSequences, FilterAndBranches) { WithFilter(Form::kBranches); }
TEST_F(FilteredSequences, FilterAndOneBase) { WithFilter(Form::kOneBase); }
TEST_F(FilteredSequences, FilterAndTablePointers) { WithFilter(Form::kBranches, AnyWords()); }
TEST_F(FilteredSequences, LeavingOut) { WithSectors(Form::kStraightOn); }
TEST_F(FilteredSequences, LeavingOutAndBranches) { WithSectors(Form::kBranches); }
TEST_F(FilteredSequences, LeavingOutAndOneBase) { WithSectors(Form::kOneBase); }
TEST_F(FilteredSequences, LeavingOutByAreas) { WithSectors(Form::kOneBase, true); }
TEST_F(FilteredSequences, PartlyWithBranches) { WithSectors(Form::kBranches, false, true); }
TEST_F(FilteredSequences, PartlyWithOneBase) { WithSectors(Form::kOneBase, true, true); }

}  // namespace
}  // namespace trapline
