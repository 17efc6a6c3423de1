#include "tests/translator/tracer.h"

#include <asm/prctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>

extern "C" {
// Calls `function` on `stack` with six arguments, all other registers zero, and the flags given.
std::uint64_t CallOnStack(const void* function, std::uint64_t stack, const std::uint64_t* arguments,
                          std::uint64_t flags);
extern const char CallOnStackReturn[];
}

asm(R"(
  .text
  .globl CallOnStack, CallOnStackReturn
CallOnStack:
  push %rbx
  push %rbp
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, saved_host_rsp(%rip)
  mov %rsi, %rsp
  mov %rdi, %rax
  mov %rcx, %rbp
  mov %rdx, %rbx
  mov (%rbx), %rdi
  mov 8(%rbx), %rsi
  mov 16(%rbx), %rdx
  mov 24(%rbx), %rcx
  mov 32(%rbx), %r8
  mov 40(%rbx), %r9
  mov $0, %ebx
  mov $0, %r10d
  mov $0, %r11d
  mov $0, %r12d
  mov $0, %r13d
  mov $0, %r14d
  mov $0, %r15d
  push %rbp
  mov $0, %ebp
  popfq
  call *%rax
CallOnStackReturn:
  nop
  pushfq
  andq $~0x100, (%rsp)
  popfq
  mov saved_host_rsp(%rip), %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbp
  pop %rbx
  ret
  .bss
saved_host_rsp: .quad 0
  .text
)");

namespace trapline {
namespace {

constexpr std::size_t kStackSize = 1u << 20;
constexpr std::uint64_t kFlags = 0x202;
constexpr std::uint64_t kTrapFlag = 0x100;
// Where nothing is: the cache meets it as the target of a return.
constexpr std::uint64_t kStop = 0x7ffffff0000;

std::uint64_t StackTop() {
  static void* const stack =
      mmap(nullptr, kStackSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) throw std::bad_alloc();
  return reinterpret_cast<std::uint64_t>(stack) + kStackSize - 4096;
}

std::uint64_t FsBase() {
  std::uint64_t base = 0;
  syscall(SYS_arch_prctl, ARCH_GET_FS, &base);
  return base;
}

struct StepState {
  bool active = false;
  std::uint64_t entry = 0;
  std::uint64_t fs_base = 0;
  std::uint64_t last_repeated = 0;
  TracedRun run;
};
StepState g_steps;

RegisterFile RegistersOf(const ucontext_t& state) {
  const auto& from = state.uc_mcontext.gregs;
  RegisterFile registers;
  static constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                   REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                   REG_R12, REG_R13, REG_R14, REG_R15};
  for (unsigned i = 0; i < 16; ++i) registers.gpr[i] = static_cast<std::uint64_t>(from[kOrder[i]]);
  registers.rip = static_cast<std::uint64_t>(from[REG_RIP]);
  registers.rflags = static_cast<std::uint64_t>(from[REG_EFL]);
  registers.xsave = reinterpret_cast<const unsigned char*>(state.uc_mcontext.fpregs);
  return registers;
}

void OnTrap(int, siginfo_t*, void* context) {
  const auto* state = static_cast<const ucontext_t*>(context);
  RegisterFile registers = RegistersOf(*state);
  registers.fs_base = g_steps.fs_base;
  if (registers.rip == g_steps.entry) g_steps.active = true;
  if (registers.rip == reinterpret_cast<std::uint64_t>(CallOnStackReturn)) g_steps.active = false;
  if (!g_steps.active) return;
  ++g_steps.run.instructions;
  std::uint8_t bytes[kMaximumInstructionLength];
  std::memcpy(bytes, reinterpret_cast<const void*>(registers.rip), sizeof bytes);
  const auto instruction = Decode(bytes, registers.rip);
  if (!instruction || !instruction->effects_known) {
    g_steps.run.failure = "cannot decode an instruction";
    return;
  }
  // A repeated move traps after each element; its first trap has told the whole range.
  const bool whole = instruction->repeat == Repeat::kRep;
  const bool again = whole && g_steps.last_repeated == registers.rip;
  g_steps.last_repeated = whole ? registers.rip : 0;
  if (again) return;
  for (const MemoryAccess& access : Accesses(*instruction, registers)) {
    g_steps.run.accesses.push_back({registers.rip, access});
  }
}

// --- states

std::vector<RegisterFile> g_states;
CodeCache* g_cache = nullptr;

void AddState(RegisterFile registers) {
  constexpr std::uint64_t kFlagsKept = 0xcd5;
  registers.rflags &= kFlagsKept;
  registers.xsave = nullptr;
  registers.fs_base = 0;
  if (!g_states.empty()) {
    const RegisterFile& last = g_states.back();
    const bool same = std::memcmp(last.gpr, registers.gpr, sizeof last.gpr) == 0 &&
                      last.rip == registers.rip && last.rflags == registers.rflags;
    if (same) return;
  }
  g_states.push_back(registers);
}

void OnNativeState(int, siginfo_t*, void* context) {
  const RegisterFile registers = RegistersOf(*static_cast<const ucontext_t*>(context));
  if (registers.rip == g_steps.entry) g_steps.active = true;
  if (registers.rip == reinterpret_cast<std::uint64_t>(CallOnStackReturn)) g_steps.active = false;
  if (g_steps.active) AddState(registers);
}

void OnCacheState(int, siginfo_t*, void* context) {
  const auto recovered =
      g_cache->Recover(RegistersOf(*static_cast<const ucontext_t*>(context)), g_cache->thread());
  if (recovered) AddState(*recovered);
}

// The trap flag's handler, on a stack of its own.
class TrapHandler {
 public:
  explicit TrapHandler(void (*handler)(int, siginfo_t*, void*)) {
    static unsigned char signal_stack[65536];
    stack_t alternate{};
    alternate.ss_sp = signal_stack;
    alternate.ss_size = sizeof signal_stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGTRAP, &action, &before_);
  }
  ~TrapHandler() { sigaction(SIGTRAP, &before_, nullptr); }
  TrapHandler(const TrapHandler&) = delete;
  TrapHandler& operator=(const TrapHandler&) = delete;

 private:
  struct sigaction before_ {};
};

void IgnoreAccess(const AccessSite*, std::uint64_t, const RegisterFile*) {}

void OnAccess(const AccessSite* site, std::uint64_t address, const RegisterFile* registers) {
  auto& accesses = RecordedAccesses();
  if (site->instruction == nullptr) {
    accesses.push_back({site->rip, {address, site->size, site->read, site->write, site->atomic}});
    return;
  }
  for (const MemoryAccess& access : Accesses(*site->instruction, *registers)) {
    accesses.push_back({site->rip, access});
  }
}

}  // namespace

std::string Text(const TracedAccess& access) {
  char text[128];
  std::snprintf(text, sizeof text, "%#lx %s%s%s %lu bytes at %#lx", access.rip,
                access.access.read ? "r" : "", access.access.write ? "w" : "",
                access.access.atomic ? " atomic" : "", access.access.size, access.access.address);
  return text;
}

std::vector<TracedAccess>& RecordedAccesses() {
  static std::vector<TracedAccess> accesses;
  return accesses;
}

TranslatorOptions RecordingOptions() {
  TranslatorOptions options;
  options.read_code = [](std::uint64_t address, std::uint8_t* to, std::size_t size) {
    std::memcpy(to, reinterpret_cast<const void*>(address), size);
    return size;
  };
  options.handler = OnAccess;
  options.save_vector_state = true;
  return options;
}

RegisterFile RegistersFor(const void* function, const Arguments& arguments, std::uint64_t stop) {
  RegisterFile registers;
  static constexpr std::uint8_t kArgument[] = {kRdi, kRsi, kRdx, kRcx, 8, 9};
  for (std::size_t i = 0; i < arguments.size(); ++i) registers.gpr[kArgument[i]] = arguments[i];
  registers.gpr[kRax] = reinterpret_cast<std::uint64_t>(function);
  registers.gpr[kRsp] = StackTop() - 8;
  std::memcpy(reinterpret_cast<void*>(registers.gpr[kRsp]), &stop, sizeof stop);
  registers.rip = reinterpret_cast<std::uint64_t>(function);
  registers.rflags = kFlags;
  registers.fs_base = FsBase();
  return registers;
}

std::uint64_t RunNatively(const void* function, const Arguments& arguments) {
  std::uint64_t six[6] = {};
  for (std::size_t i = 0; i < arguments.size(); ++i) six[i] = arguments[i];
  return CallOnStack(function, StackTop(), six, kFlags);
}

TracedRun RunBySingleSteps(const void* function, const Arguments& arguments) {
  const TrapHandler handler(OnTrap);
  g_steps = {};
  g_steps.entry = reinterpret_cast<std::uint64_t>(function);
  g_steps.fs_base = FsBase();
  g_steps.run.accesses.reserve(1u << 20);
  std::uint64_t six[6] = {};
  for (std::size_t i = 0; i < arguments.size(); ++i) six[i] = arguments[i];
  g_steps.run.result = CallOnStack(function, StackTop(), six, kFlags | kTrapFlag);
  return std::move(g_steps.run);
}

TracedRun RunInCache(const void* function, const Arguments& arguments, TranslatorOptions options) {
  TranslatorOptions recording = RecordingOptions();
  options.read_code = recording.read_code;
  options.handler = recording.handler;
  options.save_vector_state = true;
  CodeCache cache(options);
  RecordedAccesses().clear();
  RecordedAccesses().reserve(1u << 20);
  RegisterFile registers = RegistersFor(function, arguments, kStop);
  TracedRun run;
  switch (cache.Run(registers, kStop)) {
    case CodeCache::RunResult::kStopped:
      break;
    case CodeCache::RunResult::kMustStep:
      run.failure = "must step";
      break;
    case CodeCache::RunResult::kNoCode:
      run.failure = "no code";
      break;
  }
  if (!run.failure.empty()) {
    char at[32];
    std::snprintf(at, sizeof at, " at %#lx", registers.rip);
    run.failure += at;
  }
  run.result = registers.gpr[kRax];
  run.accesses = RecordedAccesses();
  return run;
}

std::vector<RegisterFile> StatesNatively(const void* function, const Arguments& arguments) {
  const TrapHandler handler(OnNativeState);
  g_states.clear();
  g_states.reserve(1u << 16);
  g_steps = {};
  g_steps.entry = reinterpret_cast<std::uint64_t>(function);
  std::uint64_t six[6] = {};
  for (std::size_t i = 0; i < arguments.size(); ++i) six[i] = arguments[i];
  CallOnStack(function, StackTop(), six, kFlags | kTrapFlag);
  return std::move(g_states);
}

std::vector<RegisterFile> StatesInCache(const void* function, const Arguments& arguments,
                                        const std::function<void()>& prepare,
                                        TranslatorOptions options) {
  options.read_code = RecordingOptions().read_code;
  if (options.handler == nullptr) options.handler = IgnoreAccess;
  options.save_vector_state = true;
  CodeCache cache(options);
  g_cache = &cache;
  prepare();
  RegisterFile registers =
      RegistersFor(function, arguments, reinterpret_cast<std::uint64_t>(CallOnStackReturn));
  cache.Run(registers, reinterpret_cast<std::uint64_t>(CallOnStackReturn));
  g_states.clear();
  g_states.reserve(1u << 16);
  registers = RegistersFor(function, arguments, reinterpret_cast<std::uint64_t>(CallOnStackReturn));
  registers.rflags |= kTrapFlag;
  prepare();
  const TrapHandler handler(OnCacheState);
  cache.Run(registers, reinterpret_cast<std::uint64_t>(CallOnStackReturn));
  return std::move(g_states);
}

}  // namespace trapline
