// Signal frames: what PushSignalFrame writes is compared with the frame the kernel writes for the
// same registers, and what PopSignalFrame takes with what the kernel takes on rt_sigreturn.
#include "hypervisor/signals.h"

#include <alloca.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "shadow-pages/address.h"

namespace trapline {
namespace {

constexpr std::size_t kStackSize = 512 << 10;
constexpr std::size_t kLegacySize = 512, kSoftwareAt = 464, kHeaderSize = 64, kMxcsrAt = 24;
constexpr std::size_t kKernelContextSize = 304;  // of the 968 bytes of glibc's ucontext_t
constexpr std::size_t kFrameSize = 8 + kKernelContextSize + sizeof(siginfo_t);
// Offsets in a frame.
constexpr std::size_t kContextAt = 8, kInfoAt = kContextAt + kKernelContextSize;
constexpr std::size_t kStackAt = kContextAt + offsetof(ucontext_t, uc_stack);
constexpr std::size_t kRegistersAt = kContextAt + offsetof(ucontext_t, uc_mcontext);
constexpr std::size_t kVectorPointerAt =
    kContextAt + offsetof(ucontext_t, uc_mcontext) + offsetof(mcontext_t, fpregs);
constexpr std::size_t kMaskAt = kContextAt + offsetof(ucontext_t, uc_sigmask);

template <typename T>
T Load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

char* Pointer(std::uint64_t address) { return reinterpret_cast<char*>(address); }
std::uint64_t Number(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// Memory for stacks, with nothing accessible around it.
class Stack {
 public:
  explicit Stack(std::size_t size) : size_(size) {
    void* area = mmap(nullptr, size + 2 * kPageSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) std::abort();
    base_ = static_cast<char*>(area) + kPageSize;
    if (mprotect(base_, size, PROT_READ | PROT_WRITE) != 0) std::abort();
  }
  ~Stack() { munmap(base_ - kPageSize, size_ + 2 * kPageSize); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  char* base() const { return base_; }
  std::size_t size() const { return size_; }
  std::uint64_t top() const { return Number(base_) + size_; }

 private:
  char* base_;
  std::size_t size_;
};

// --- the kernel's side

constexpr std::size_t kMostVectorState = 16384;

// What the handler saw. In static memory: it runs on stacks that are under test.
struct Seen {
  int count;
  int signal;
  std::uint64_t frame_at, info_at, context_at;
  char frame[kFrameSize];
  char vector_state[kMostVectorState + 4];
  std::size_t vector_size;
  stack_t alternate_in_handler;
  stack_t alternate_afterwards;
  void (*mutate)(ucontext_t&);
};
Seen seen;

void Handler(int signal, siginfo_t* info, void* context) {
  auto& user = *static_cast<ucontext_t*>(context);
  ++seen.count;
  seen.signal = signal;
  seen.info_at = Number(info);
  seen.context_at = Number(context);
  seen.frame_at = seen.context_at - kContextAt;
  std::memcpy(seen.frame, Pointer(seen.frame_at), kFrameSize);
  const auto* state = reinterpret_cast<const char*>(user.uc_mcontext.fpregs);
  seen.vector_size = Load<std::uint32_t>(state + kSoftwareAt + 16);
  if (seen.vector_size <= kMostVectorState)
    std::memcpy(seen.vector_state, state, seen.vector_size + 4);
  sigaltstack(nullptr, &seen.alternate_in_handler);
  if (seen.mutate != nullptr) seen.mutate(user);
}

struct Scenario {
  const char* name;
  bool handler_on_alternate;  // SA_ONSTACK
  enum { kNone, kElsewhere, kAroundThread } alternate;
  int flags;  // SS_AUTODISARM or 0
};

ucontext_t main_context, thread_context;
const stack_t* to_set;

// Deep enough in its stack that a frame at the top of the alternate stack, which may be this one's
// lower part, touches nothing in use.
__attribute__((noinline)) void RaiseDeepDown() {
  volatile char* room = static_cast<volatile char*>(alloca(kStackSize / 2 + kStackSize / 8));
  room[0] = 0;
  sigaltstack(to_set, nullptr);
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
  sigaltstack(nullptr, &seen.alternate_afterwards);
  const stack_t none{nullptr, SS_DISABLE, 0};
  sigaltstack(&none, nullptr);
}

// Has the kernel deliver SIGUSR1 on a stack of its own, and leaves what happened in `seen`.
class KernelDelivery {
 public:
  explicit KernelDelivery(const Scenario& scenario, void (*mutate)(ucontext_t&) = nullptr)
      : thread_stack_(kStackSize), other_stack_(kStackSize / 2) {
    seen = {};
    seen.mutate = mutate;
    registered_ = {nullptr, SS_DISABLE, 0};
    if (scenario.alternate == Scenario::kElsewhere)
      registered_ = {other_stack_.base(), scenario.flags, other_stack_.size()};
    if (scenario.alternate == Scenario::kAroundThread)
      registered_ = {thread_stack_.base(), scenario.flags, kStackSize / 2};
    to_set = &registered_;
    struct sigaction action {
    }, old_action{};
    action.sa_sigaction = &Handler;
    action.sa_flags = SA_SIGINFO | (scenario.handler_on_alternate ? SA_ONSTACK : 0);
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &action, &old_action);
    stack_t old_stack{};
    sigaltstack(nullptr, &old_stack);  // a sanitizer's, perhaps
    getcontext(&thread_context);
    thread_context.uc_stack.ss_sp = thread_stack_.base();
    thread_context.uc_stack.ss_size = thread_stack_.size();
    thread_context.uc_link = &main_context;
    makecontext(&thread_context, &RaiseDeepDown, 0);
    swapcontext(&main_context, &thread_context);
    sigaltstack(&old_stack, nullptr);
    sigaction(SIGUSR1, &old_action, nullptr);
  }

  AlternateStack registered() const {
    AlternateStack stack;
    if ((registered_.ss_flags & SS_DISABLE) == 0) {
      stack.sp = Number(registered_.ss_sp);
      stack.flags = registered_.ss_flags;
      stack.size = registered_.ss_size;
    }
    return stack;
  }
  static kvm_regs Registers() {
    const auto* from = reinterpret_cast<const greg_t*>(seen.frame + kRegistersAt);
    const auto get = [&](int index) { return static_cast<std::uint64_t>(from[index]); };
    kvm_regs registers{};
    registers.r8 = get(REG_R8);
    registers.r9 = get(REG_R9);
    registers.r10 = get(REG_R10);
    registers.r11 = get(REG_R11);
    registers.r12 = get(REG_R12);
    registers.r13 = get(REG_R13);
    registers.r14 = get(REG_R14);
    registers.r15 = get(REG_R15);
    registers.rdi = get(REG_RDI);
    registers.rsi = get(REG_RSI);
    registers.rbp = get(REG_RBP);
    registers.rbx = get(REG_RBX);
    registers.rdx = get(REG_RDX);
    registers.rax = get(REG_RAX);
    registers.rcx = get(REG_RCX);
    registers.rsp = get(REG_RSP);
    registers.rip = get(REG_RIP);
    registers.rflags = get(REG_EFL);
    return registers;
  }

 private:
  Stack thread_stack_, other_stack_;
  stack_t registered_{};
};

// What sigaltstack(NULL, &old) would say (sigaltstack(2)).
stack_t Query(const AlternateStack& stack, std::uint64_t sp) {
  stack_t answer{};
  answer.ss_flags = stack.flags & kAutoDisarm;
  if ((stack.flags & SS_DISABLE) != 0 || stack.size == 0) {
    answer.ss_flags |= SS_DISABLE;
    return answer;
  }
  answer.ss_sp = Pointer(stack.sp);
  answer.ss_size = stack.size;
  if ((stack.flags & kAutoDisarm) == 0 && stack.Contains(sp)) {
    answer.ss_flags |= SS_ONSTACK;
  }
  return answer;
}

void ExpectSame(const stack_t& monitor, const stack_t& kernel) {
  EXPECT_EQ(monitor.ss_flags, kernel.ss_flags);
  if ((kernel.ss_flags & SS_DISABLE) != 0) return;  // where it was is of no interest
  EXPECT_EQ(monitor.ss_sp, kernel.ss_sp);
  EXPECT_EQ(monitor.ss_size, kernel.ss_size);
}

class AgainstKernel : public ::testing::TestWithParam<Scenario> {};

TEST_P(AgainstKernel, SameFrame) {
  const KernelDelivery delivery(GetParam());
  ASSERT_EQ(seen.count, 1);
  ASSERT_GE(seen.vector_size, kLegacySize + kHeaderSize);
  ASSERT_LE(seen.vector_size, kMostVectorState);

  kvm_regs registers = KernelDelivery::Registers();
  const kvm_regs before = registers;
  const auto* gregs = reinterpret_cast<const greg_t*>(seen.frame + kRegistersAt);
  SignalDelivery signal;
  signal.signal = SIGUSR1;
  std::memcpy(&signal.info, seen.frame + kInfoAt, sizeof signal.info);
  signal.error_code = static_cast<std::uint64_t>(gregs[REG_ERR]);
  signal.trap_number = static_cast<std::uint64_t>(gregs[REG_TRAPNO]);
  signal.fault_address = static_cast<std::uint64_t>(gregs[REG_CR2]);
  KernelSigaction action;
  action.handler = 0x401000;
  action.flags = SA_SIGINFO | (GetParam().handler_on_alternate ? SA_ONSTACK : 0);
  action.restorer = Load<std::uint64_t>(seen.frame);
  AlternateStack alternate = delivery.registered();
  const auto mask = Load<std::uint64_t>(seen.frame + kMaskAt);
  std::vector<char> state(seen.vector_state, seen.vector_state + seen.vector_size);
  std::memset(state.data() + kSoftwareAt, 0, 48);
  state[kLegacySize] = static_cast<char>(state[kLegacySize] & ~3);
  const auto components = Load<std::uint64_t>(seen.vector_state + kSoftwareAt + 8);
  ASSERT_TRUE(PushSignalFrame(registers, signal, action, mask, alternate, state.data(),
                              state.size(), components));

  ASSERT_EQ(registers.rsp, seen.frame_at);
  EXPECT_EQ(registers.rip, action.handler);
  EXPECT_EQ(registers.rdi, static_cast<std::uint64_t>(SIGUSR1));
  EXPECT_EQ(registers.rsi, seen.info_at);
  EXPECT_EQ(registers.rdx, seen.context_at);
  EXPECT_EQ(registers.rax, 0u);
  EXPECT_EQ(registers.rbx, before.rbx);
  EXPECT_EQ(registers.r15, before.r15);
  const char* frame = Pointer(registers.rsp);
  EXPECT_EQ(Load<std::uint64_t>(frame), action.restorer);
  const auto& context = *reinterpret_cast<const ucontext_t*>(frame + kContextAt);
  const auto& kernel = *reinterpret_cast<const ucontext_t*>(seen.frame + kContextAt);
  EXPECT_EQ(context.uc_flags, kernel.uc_flags);
  EXPECT_EQ(context.uc_link, kernel.uc_link);
  {
    SCOPED_TRACE("uc_stack");
    ExpectSame(context.uc_stack, kernel.uc_stack);
  }
  for (int i = 0; i < NGREG; ++i)
    EXPECT_EQ(context.uc_mcontext.gregs[i], kernel.uc_mcontext.gregs[i]) << "register " << i;
  EXPECT_EQ(context.uc_mcontext.fpregs, kernel.uc_mcontext.fpregs);
  EXPECT_EQ(Load<std::uint64_t>(frame + kMaskAt), mask);
  EXPECT_EQ(std::memcmp(frame + kInfoAt, seen.frame + kInfoAt, sizeof(siginfo_t)), 0);
  const auto* image = reinterpret_cast<const char*>(context.uc_mcontext.fpregs);
  for (std::size_t i = 0; i < seen.vector_size + 4; ++i)
    ASSERT_EQ(image[i], seen.vector_state[i]) << "vector state, byte " << i;
  SCOPED_TRACE("alternate stack in the handler");
  ExpectSame(Query(alternate, registers.rsp), seen.alternate_in_handler);
}

// rt_sigreturn's rules for the alternate stack, with the program's changes to the frame.
struct Mutation {
  const char* name;
  void (*apply)(ucontext_t&);
};
alignas(64) char another_stack[65536];
const Mutation kMutations[] = {
    {"none", [](ucontext_t&) {}},
    {"another",
     [](ucontext_t& c) {
       c.uc_stack = {another_stack, 0, sizeof another_stack};
     }},
    {"disable",
     [](ucontext_t& c) {
       c.uc_stack = {another_stack, SS_DISABLE, 9};
     }},
};
const Mutation kUnacceptable[] = {
    {"bad flags",
     [](ucontext_t& c) {
       c.uc_stack = {another_stack, 0x40, sizeof another_stack};
     }},
    {"too small",
     [](ucontext_t& c) {
       c.uc_stack = {another_stack, 0, 100};
     }},
};

// The kernel delivers, the handler changes the frame, the kernel returns; then the same by
// PushSignalFrame and PopSignalFrame.
void CompareReturn(const Scenario& scenario, const Mutation& mutation) {
  SCOPED_TRACE(mutation.name);
  const KernelDelivery delivery(scenario, mutation.apply);
  ASSERT_EQ(seen.count, 1);
  kvm_regs registers = KernelDelivery::Registers();
  const kvm_regs before = registers;
  SignalDelivery signal;
  signal.signal = SIGUSR1;
  KernelSigaction action;
  action.handler = 0x401000;
  action.flags = SA_SIGINFO | (scenario.handler_on_alternate ? SA_ONSTACK : 0);
  AlternateStack alternate = delivery.registered();
  std::vector<char> state(1024);
  InitializeVectorState(state.data(), state.size());
  ASSERT_TRUE(
      PushSignalFrame(registers, signal, action, 0, alternate, state.data(), state.size(), 7));
  mutation.apply(*reinterpret_cast<ucontext_t*>(registers.rsp + kContextAt));
  registers.rsp += 8;  // the handler's return
  SignalMask mask = 0;
  ASSERT_TRUE(PopSignalFrame(registers, mask, alternate, state.data(), state.size(), 7));
  EXPECT_EQ(registers.rsp, before.rsp);
  EXPECT_EQ(registers.rip, before.rip);
  ExpectSame(Query(alternate, registers.rsp), seen.alternate_afterwards);
}

TEST_P(AgainstKernel, SameAlternateStackAfterReturn) {
  if (GetParam().alternate == Scenario::kElsewhere && GetParam().handler_on_alternate &&
      GetParam().flags == 0) {
    // Whether the handler's or the interrupted stack pointer counts depends on the kernel's age
    // (before 6.12 the latter); both see the same in a frame that was not changed.
    CompareReturn(GetParam(), kMutations[0]);
    return;
  }
  for (const Mutation& mutation : kMutations) CompareReturn(GetParam(), mutation);
}

TEST_P(AgainstKernel, UnacceptableAlternateStackIsIgnored) {
  for (const Mutation& mutation : kUnacceptable) CompareReturn(GetParam(), mutation);
}

const auto kScenarioName = [](const auto& scenario) { return std::string(scenario.param.name); };
INSTANTIATE_TEST_SUITE_P(Stacks, AgainstKernel,
                         ::testing::Values(Scenario{"None", false, Scenario::kNone, 0},
                                           Scenario{"NoneWanted", true, Scenario::kNone, 0},
                                           Scenario{"Unused", false, Scenario::kElsewhere, 0},
                                           Scenario{"Entered", true, Scenario::kElsewhere, 0},
                                           Scenario{"EnteredAutoDisarm", true, Scenario::kElsewhere,
                                                    kAutoDisarm}),
                         kScenarioName);
// Threads on their alternate stack, and stacks that disarm themselves.
INSTANTIATE_TEST_SUITE_P(
    AlternateStacks, AgainstKernel,
    ::testing::Values(Scenario{"UnusedAutoDisarm", false, Scenario::kElsewhere, kAutoDisarm},
                      Scenario{"Nested", true, Scenario::kAroundThread, 0},
                      Scenario{"NestedUnused", false, Scenario::kAroundThread, 0},
                      Scenario{"NestedAutoDisarm", true, Scenario::kAroundThread, kAutoDisarm},
                      Scenario{"NestedUnusedAutoDisarm", false, Scenario::kAroundThread,
                               kAutoDisarm}),
    kScenarioName);

// --- frames of our own

constexpr std::uint64_t kComponents = 0xe7;              // x87, SSE, AVX, AVX-512
constexpr std::size_t kStateSize = 2688;                 // where their image ends
constexpr std::uint64_t kFlagsAProgramCanSet = 0x50dd5;  // AC RF OF DF TF SF ZF AF PF CF

class SignalFrames : public ::testing::Test {
 protected:
  SignalFrames() : stack_(64 << 10), state_(kStateSize) {}

  void Randomize(std::mt19937_64& random) {
    auto* words = reinterpret_cast<std::uint64_t*>(&registers_);
    for (std::size_t i = 0; i < sizeof registers_ / 8; ++i) words[i] = random();
    registers_.rsp = stack_.top() - 1024 - random() % 4096;
    registers_.rflags = 0x202 | (random() & kFlagsAProgramCanSet);
    for (char& byte : state_) byte = static_cast<char>(random());
    // A valid image: what the processor's XSAVE writes.
    std::memset(state_.data() + kLegacySize, 0, kHeaderSize);
    const std::uint64_t present = random() & kComponents;
    std::memcpy(state_.data() + kLegacySize, &present, sizeof present);
    const std::uint32_t mxcsr = random() & 0xffff, mask = 0;
    std::memcpy(state_.data() + kMxcsrAt, &mxcsr, sizeof mxcsr);
    std::memcpy(state_.data() + kMxcsrAt + 4, &mask, sizeof mask);
    signal_.signal = SIGUSR1;
    mask_ = random();
    pushed_registers_ = registers_;
    pushed_state_ = state_;
  }

  [[nodiscard]] bool Push() {
    KernelSigaction action;
    action.handler = 0x401000;
    action.restorer = 0x402000;
    action.flags = action_flags_;
    return PushSignalFrame(registers_, signal_, action, mask_, alternate_, state_.data(),
                           state_.size(), kComponents);
  }
  // Where the handler's `ret` leaves the stack, everything else forgotten.
  void EndHandler() {
    const std::uint64_t sp = registers_.rsp + 8, flags = 0x246;
    registers_ = {};
    registers_.rsp = sp;
    registers_.rflags = flags;
    std::memset(state_.data(), 0x77, state_.size());
    mask_ = 0;
  }
  [[nodiscard]] bool Pop() {
    return PopSignalFrame(registers_, mask_, alternate_, state_.data(), state_.size(), kComponents);
  }
  void PushAndEndHandler() {
    std::mt19937_64 random(99);
    Randomize(random);
    ASSERT_TRUE(Push());
    EndHandler();
  }

  char* frame() { return Pointer(registers_.rsp - 8); }
  char* image() { return Pointer(Load<std::uint64_t>(frame() + kVectorPointerAt)); }
  std::uint64_t present() const { return Load<std::uint64_t>(state_.data() + kLegacySize); }

  // Whatever the frame said, the image must be one that XRSTOR takes (Intel SDM vol. 1, 13.8).
  void ExpectRestorable() const {
    EXPECT_EQ(present() & ~kComponents, 0u);
    for (std::size_t i = 8; i < kHeaderSize; ++i)
      ASSERT_EQ(state_[kLegacySize + i], 0) << "header byte " << i;
    EXPECT_EQ(Load<std::uint32_t>(state_.data() + kMxcsrAt) & ~0xffffu, 0u);
  }
  void ExpectInitialBeyondLegacy() const {
    EXPECT_EQ(present(), 3u);
    ExpectRestorable();
  }

  template <typename T>
  static void Store(char* to, T value) {
    std::memcpy(to, &value, sizeof value);
  }

  Stack stack_;
  kvm_regs registers_{}, pushed_registers_{};
  SignalDelivery signal_;
  SignalMask mask_ = 0;
  AlternateStack alternate_;
  std::uint64_t action_flags_ = SA_SIGINFO;
  std::vector<char> state_, pushed_state_;
};

TEST_F(SignalFrames, RoundTrip) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Randomize(random);
    const SignalMask mask = mask_;
    // The red zone below the stack pointer is the program's.
    char red_zone[128];
    for (char& byte : red_zone) byte = static_cast<char>(random());
    std::memcpy(Pointer(registers_.rsp) - 128, red_zone, sizeof red_zone);
    ASSERT_TRUE(Push());
    EXPECT_EQ(registers_.rsp % 16, 8u) << "as after a call";
    EXPECT_EQ(registers_.rflags & 0x10500, 0u) << "RF, DF or TF in a handler";
    EXPECT_EQ(Load<std::uint64_t>(frame() + 8), 0x402000u);
    EndHandler();
    ASSERT_TRUE(Pop());
    EXPECT_EQ(std::memcmp(Pointer(registers_.rsp) - 128, red_zone, sizeof red_zone), 0);
    kvm_regs expected = pushed_registers_;
    expected.rflags = (0x246 & ~kFlagsAProgramCanSet) | (expected.rflags & kFlagsAProgramCanSet);
    EXPECT_EQ(std::memcmp(&registers_, &expected, sizeof expected), 0);
    EXPECT_EQ(mask_, mask & ~(MaskOf(SIGKILL) | MaskOf(SIGSTOP)));
    EXPECT_EQ(alternate_.flags, SS_DISABLE);
    EXPECT_EQ(present(), Load<std::uint64_t>(pushed_state_.data() + kLegacySize) | 3);
    ExpectRestorable();
    const auto same = [&](std::size_t from, std::size_t to) {
      return std::memcmp(&state_[from], &pushed_state_[from], to - from) == 0;
    };
    EXPECT_TRUE(same(0, kSoftwareAt));
    EXPECT_TRUE(same(kLegacySize + kHeaderSize, kStateSize));
  }
}

TEST_F(SignalFrames, NoRoomIsFailure) {
  std::mt19937_64 random(1);
  for (const std::uint64_t sp : {Number(stack_.base()) + 1000, Number(stack_.base()),
                                 std::uint64_t{0}, std::uint64_t{500}, std::uint64_t{1} << 63}) {
    Randomize(random);
    registers_.rsp = sp;
    const kvm_regs before = registers_;
    EXPECT_FALSE(Push()) << sp;
    EXPECT_EQ(std::memcmp(&registers_, &before, sizeof before), 0);
  }
  // An alternate stack too small for the frame, although there is memory below it.
  Randomize(random);
  action_flags_ |= SA_ONSTACK;
  alternate_.sp = stack_.top() - 8192;
  alternate_.size = 2048;
  alternate_.flags = 0;
  registers_.rsp = stack_.top() - 128;
  EXPECT_FALSE(Push());
  // Used up by handlers that interrupt each other.
  alternate_.sp = Number(stack_.base()) + 4096;
  alternate_.size = 32768;
  int depth = 0;
  while (depth < 100 && Push()) {
    EXPECT_GE(registers_.rsp, alternate_.sp);
    EXPECT_TRUE(alternate_.Contains(registers_.rsp));
    ++depth;
  }
  EXPECT_GT(depth, 5);
  EXPECT_LT(depth, 12);
}

TEST_F(SignalFrames, UnreadableFrame) {
  PushAndEndHandler();
  const std::uint64_t good = registers_.rsp;
  for (const std::uint64_t sp :
       {std::uint64_t{8}, std::uint64_t{0}, stack_.top() - 100, Number(stack_.base()) - 100,
        std::uint64_t{0xffffffff80000000}, ~std::uint64_t{0}}) {
    registers_.rsp = sp;
    EXPECT_FALSE(Pop()) << std::hex << sp;
  }
  registers_.rsp = good;
  EXPECT_TRUE(Pop());
}

TEST_F(SignalFrames, FlagsOnlyTheKernelMaySet) {
  PushAndEndHandler();
  Store(frame() + kRegistersAt + 8 * REG_EFL, ~std::uint64_t{0});
  ASSERT_TRUE(Pop());
  EXPECT_EQ(registers_.rflags, 0x246 | kFlagsAProgramCanSet);
  PushAndEndHandler();
  Store(frame() + kRegistersAt + 8 * REG_EFL, std::uint64_t{0});
  ASSERT_TRUE(Pop());
  EXPECT_EQ(registers_.rflags, 0x202u) << "interrupts off, or a status flag left";
}

TEST_F(SignalFrames, KillAndStopCannotBeBlocked) {
  PushAndEndHandler();
  Store(frame() + kMaskAt, ~std::uint64_t{0});
  ASSERT_TRUE(Pop());
  EXPECT_EQ(mask_, ~(MaskOf(SIGKILL) | MaskOf(SIGSTOP)));
}

TEST_F(SignalFrames, NoVectorState) {
  PushAndEndHandler();
  Store(frame() + kVectorPointerAt, std::uint64_t{0});
  ASSERT_TRUE(Pop());
  std::vector<char> initial(kStateSize);
  InitializeVectorState(initial.data(), initial.size());
  EXPECT_EQ(state_, initial);
  EXPECT_EQ(Load<std::uint16_t>(initial.data()), 0x37f);
  EXPECT_EQ(Load<std::uint32_t>(initial.data() + kMxcsrAt), 0x1f80u);
}

TEST_F(SignalFrames, UnreachableVectorState) {
  PushAndEndHandler();
  const std::uint64_t sp = registers_.rsp, good = Number(image());
  for (const std::uint64_t bad :
       {good + 8, good + 1, std::uint64_t{64}, Number(stack_.base()) - 64, stack_.top() - 64,
        std::uint64_t{0xffffffff80000000}, ~std::uint64_t{63}}) {
    registers_.rsp = sp;
    Store(frame() + kVectorPointerAt, bad);
    EXPECT_FALSE(Pop()) << std::hex << bad;
  }
}

// Without the marks around it, the extended part is not looked at.
TEST_F(SignalFrames, BadMarks) {
  struct Change {
    std::size_t at;
    std::uint32_t value;
  };
  for (const Change change :
       {Change{kSoftwareAt, 0}, Change{kSoftwareAt, 0x46505854}, Change{kStateSize, 0},
        Change{kStateSize, 0x46505844}, Change{kSoftwareAt + 16, 0}, Change{kSoftwareAt + 16, 575},
        Change{kSoftwareAt + 16, kStateSize + 1}, Change{kSoftwareAt + 16, kStateSize + 64},
        Change{kSoftwareAt + 16, 0xffffffff}, Change{kSoftwareAt + 16, 1024}}) {
    PushAndEndHandler();
    Store(image() + change.at, change.value);
    ASSERT_TRUE(Pop()) << change.at << " " << change.value;
    ExpectInitialBeyondLegacy();
    EXPECT_EQ(std::memcmp(state_.data(), pushed_state_.data(), 416), 0) << "x87 and SSE";
  }
}

// A frame the program shortened: what it does not hold is in its initial state.
TEST_F(SignalFrames, ShorterVectorState) {
  PushAndEndHandler();
  constexpr std::uint32_t kShort = 832;  // ends with AVX
  Store(image() + kSoftwareAt + 16, kShort);
  Store(image() + kSoftwareAt + 8, std::uint64_t{7});
  Store(image() + kLegacySize, std::uint64_t{7});
  Store(image() + kShort, std::uint32_t{0x46505845});
  ASSERT_TRUE(Pop());
  EXPECT_EQ(present(), 7u);
  ExpectRestorable();
  EXPECT_EQ(std::memcmp(&state_[576], &pushed_state_[576], 256), 0);
}

TEST_F(SignalFrames, ReservedHeaderBitsAreDropped) {
  PushAndEndHandler();
  std::memset(image() + kLegacySize, 0xff, kHeaderSize);
  Store(image() + kSoftwareAt + 8, ~std::uint64_t{0});
  if (Pop()) {
    EXPECT_EQ(present(), kComponents);
    ExpectRestorable();
  }
}

TEST_F(SignalFrames, ReservedMxcsrBits) {
  for (const std::uint32_t mxcsr : {0x10000u, 0x80000000u, 0xffffffffu}) {
    PushAndEndHandler();
    Store(image() + kMxcsrAt, mxcsr);
    EXPECT_FALSE(Pop()) << "natively XRSTOR faults and the program gets SIGSEGV";
    // Also without the extended part.
    PushAndEndHandler();
    Store(image() + kMxcsrAt, mxcsr);
    Store(image() + kSoftwareAt, std::uint32_t{0});
    EXPECT_FALSE(Pop());
  }
}

// Rubbish anywhere in a frame: taken or refused, but what is taken can be restored.
TEST_F(SignalFrames, RandomRubbish) {
  int taken = 0, refused = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Randomize(random);
    ASSERT_TRUE(Push());
    EndHandler();
    char* const vector_state = image();
    for (std::uint64_t changes = 1 + random() % 8; changes > 0; --changes) {
      char* const at = random() % 2 == 0 ? frame() + random() % kFrameSize
                                         : vector_state + kSoftwareAt - 448 +
                                               random() % (random() % 2 == 0 ? 592 : kStateSize);
      switch (random() % 3) {
        case 0:
          *at = static_cast<char>(random());
          break;
        case 1:
          *at = static_cast<char>(*at ^ (1 << random() % 8));
          break;
        default:
          *at = random() % 2 == 0 ? '\0' : '\xff';
      }
    }
    if (!Pop()) {
      ++refused;
      continue;
    }
    ++taken;
    ExpectRestorable();
    EXPECT_EQ(registers_.rflags & ~kFlagsAProgramCanSet, 0x202u);
    EXPECT_EQ(mask_ & kUnblockable, 0u);
    alternate_ = {};
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 300);
  EXPECT_GT(refused, 50);
}

TEST(AlternateStacks, Contains) {
  AlternateStack stack;
  EXPECT_FALSE(stack.Contains(0));
  stack.sp = 0x10000;
  stack.size = 0x2000;
  EXPECT_FALSE(stack.Contains(0x11000)) << "disabled";
  stack.flags = 0;
  EXPECT_FALSE(stack.Contains(0x10000)) << "used up";
  EXPECT_TRUE(stack.Contains(0x10001));
  EXPECT_TRUE(stack.Contains(0x12000)) << "still empty";
  EXPECT_FALSE(stack.Contains(0x12001));
  EXPECT_FALSE(stack.Contains(0));
}

}  // namespace
}  // namespace trapline
