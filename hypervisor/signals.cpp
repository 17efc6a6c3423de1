#include "hypervisor/signals.h"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "hypervisor/guest_copy.h"
#include "hypervisor/guest_thread.h"
#include "hypervisor/vcpu_registers.h"
#include "shadow-pages/address.h"

extern "C" {
void trapline_signal_return();
extern const char trapline_syscall_begin[], trapline_syscall_call[], trapline_syscall_interrupted[];
}

namespace trapline {
namespace {

constexpr std::uint64_t kSaRestorer = 0x04000000;
constexpr std::uint64_t kSaOnStack = SA_ONSTACK;
constexpr std::uint64_t kDefault = 0, kIgnore = 1;

bool IsSynchronous(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
         signal == SIGTRAP;
}

void HostSigaction(int signal, const KernelSigaction& action) {
  syscall(SYS_rt_sigaction, signal, &action, nullptr, sizeof(SignalMask));
}

void HandleHostSignal(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  auto* user_context = static_cast<ucontext_t*>(context);
  GuestThread* thread = GuestThread::Current();
  // Kernel-made faults here are the monitor's own: the guest's arrive as exits.
  if (IsSynchronous(signal) && info->si_code > 0) {
    static const char kMessage[] =
        "trapline: internal error: the monitor itself faulted; please report this with the program "
        "that "
        "caused it\n";
    [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
    KernelSigaction by_default;
    HostSigaction(signal, by_default);
    errno = saved_errno;
    return;  // faults again, and dies
  }
  if (thread == nullptr || !thread->RecordSignal(signal, *info)) {
    // Another thread took the program's handler away between the kernel's decision and this line,
    // and the host's with it: have the kernel decide anew.
    syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signal, info);
    errno = saved_errno;
    return;
  }
  auto& rip = user_context->uc_mcontext.gregs[REG_RIP];
  if (rip >= reinterpret_cast<greg_t>(trapline_syscall_begin) &&
      rip <= reinterpret_cast<greg_t>(trapline_syscall_call)) {
    rip = reinterpret_cast<greg_t>(trapline_syscall_interrupted);
  }
  // One signal at a time: the thread unblocks the others when it has delivered this one.
  const SignalMask all = kAllSignals;
  std::memcpy(&user_context->uc_sigmask, &all, sizeof all);
  errno = saved_errno;
}

KernelSigaction HostActionFor(const KernelSigaction& action) {
  KernelSigaction host;
  host.flags = action.flags & (SA_NOCLDSTOP | SA_NOCLDWAIT);
  host.handler = action.handler;
  if (action.handler <= kIgnore) return host;
  host.handler = reinterpret_cast<std::uint64_t>(&HandleHostSignal);
  // SA_RESTART as the program has it: the kernel then tells, by where it puts RIP, whether the call
  // restarts.
  host.flags |= SA_SIGINFO | kSaRestorer | (action.flags & SA_RESTART);
  host.restorer = reinterpret_cast<std::uint64_t>(&trapline_signal_return);
  host.mask = kAllSignals;
  return host;
}

}  // namespace

void SignalActions::Inherit() {
  for (int signal = 1; signal <= 64; ++signal) {
    KernelSigaction old;
    syscall(SYS_rt_sigaction, signal, nullptr, &old, sizeof(SignalMask));
    KernelSigaction action;
    action.handler = old.handler == kIgnore ? kIgnore : kDefault;
    actions_[signal] = action;
  }
}

KernelSigaction SignalActions::Get(int signal) const {
  const std::lock_guard lock(mutex_);
  return actions_[signal];
}

void SignalActions::Set(int signal, const KernelSigaction& action) {
  const std::lock_guard lock(mutex_);
  // The host's handler must find the program's: a new one is entered here first, and taken away
  // last.
  if (action.handler > kIgnore) Publish(signal, action);
  HostSigaction(signal, HostActionFor(action));
  if (action.handler <= kIgnore) Publish(signal, action);
}

void SignalActions::Publish(int signal, const KernelSigaction& action) {
  KernelSigaction& entry = actions_[signal];
  entry.flags = action.flags;
  entry.restorer = action.restorer;
  entry.mask = action.mask;
  __atomic_store_n(&entry.handler, action.handler, __ATOMIC_RELEASE);
}

void SignalActions::Reapply(int signal) {
  const std::lock_guard lock(mutex_);
  HostSigaction(signal, HostActionFor(actions_[signal]));
}

void SignalActions::SetHostDefault(int signal) {
  const std::lock_guard lock(mutex_);
  actions_[signal] = {};
  HostSigaction(signal, {});
}

void SignalActions::CopyFrom(const SignalActions& other) {
  const std::lock_guard lock(other.mutex_);
  actions_ = other.actions_;
}

int AlternateStack::Replace(std::uint64_t wanted_sp, int wanted_flags, std::uint64_t wanted_size,
                            std::uint64_t rsp) {
  constexpr std::uint64_t kMinimum = 2048;  // MINSIGSTKSZ of the system call
  if (Contains(rsp)) return EPERM;
  const int mode = wanted_flags & ~kAutoDisarm;
  if (mode != SS_DISABLE && mode != SS_ONSTACK && mode != 0) return EINVAL;
  if (mode == SS_DISABLE) {
    *this = {};
    return 0;
  }
  if (wanted_size < kMinimum) return ENOMEM;
  sp = wanted_sp;
  flags = wanted_flags;
  size = wanted_size;
  return 0;
}

void SetHostMask(SignalMask mask) {
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
}

// --- frames

namespace {

// The kernel's layouts, which are user-space ABI (asm/sigcontext.h, asm-generic/ucontext.h).
struct SignalContext {
  std::uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip,
      rflags;
  std::uint16_t cs, gs, fs, ss;
  std::uint64_t error_code, trap_number, old_mask, fault_address;
  std::uint64_t vector_state;
  std::uint64_t reserved[8];
};
static_assert(sizeof(SignalContext) == 256);

struct UserContext {
  std::uint64_t flags, link;
  struct {
    std::uint64_t sp;
    std::int32_t flags, padding;
    std::uint64_t size;
  } stack;
  SignalContext context;
  SignalMask mask;
};
static_assert(sizeof(UserContext) == 304);

struct SignalFrame {
  std::uint64_t return_address;
  UserContext user;
  siginfo_t info;
};
static_assert(sizeof(siginfo_t) == 128 && sizeof(SignalFrame) == 440);

constexpr std::uint64_t kContextFlags =
    1 | 2 | 4;  // UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS
constexpr std::uint64_t kRedZone = 128;

// Bytes 464..511 of the FXSAVE area are software's: the kernel says there what follows.
struct VectorSoftwareBytes {
  std::uint32_t magic1, extended_size;
  std::uint64_t components;
  std::uint32_t state_size;
  std::uint32_t padding[7];
};
static_assert(sizeof(VectorSoftwareBytes) == 48);
constexpr std::size_t kSoftwareBytesAt = 464;
constexpr std::uint32_t kMagic1 = 0x46505853, kMagic2 = 0x46505845;
constexpr std::size_t kLegacySize = 512, kHeaderSize = 64;
constexpr std::size_t kMxcsrAt = 24, kMxcsrMaskAt = 28;

constexpr std::uint64_t kFlagsFromUser = 0x50dd5;          // AC RF OF DF TF SF ZF AF PF CF
constexpr std::uint64_t kFlagsClearedInHandler = 0x10500;  // RF DF TF

}  // namespace

void InitializeVectorState(char* vector_state, std::size_t vector_size) {
  std::memset(vector_state, 0, vector_size);
  const std::uint16_t control_word = 0x37f;
  const std::uint32_t mxcsr = 0x1f80;
  std::memcpy(vector_state, &control_word, sizeof control_word);
  std::memcpy(vector_state + kMxcsrAt, &mxcsr, sizeof mxcsr);
}

bool PushSignalFrame(kvm_regs& registers, const SignalDelivery& delivery,
                     const KernelSigaction& action, SignalMask saved_mask,
                     AlternateStack& alternate_stack, const char* vector_state,
                     std::size_t vector_size, std::uint64_t vector_mask) {
  std::uint64_t sp = registers.rsp;
  const bool on_alternate = alternate_stack.Contains(sp);
  bool entering = false;
  sp -= kRedZone;
  if ((action.flags & kSaOnStack) != 0 && !on_alternate &&
      (alternate_stack.flags & SS_DISABLE) == 0) {
    sp = alternate_stack.sp + alternate_stack.size;
    entering = true;
  }
  const std::uint64_t vector_at = AlignDown(sp - vector_size - sizeof kMagic2, 64);
  const std::uint64_t frame_at = AlignDown(vector_at - sizeof(SignalFrame), 16) - 8;
  // As the kernel does: no frame below the alternate stack, the thread would corrupt what lies
  // there.
  if ((on_alternate || entering) && frame_at < alternate_stack.sp) return false;

  SignalFrame frame{};
  frame.return_address = action.restorer;
  frame.user.flags = kContextFlags;
  frame.user.stack.sp = alternate_stack.sp;
  frame.user.stack.flags = alternate_stack.flags;
  frame.user.stack.size = alternate_stack.size;
  SignalContext& context = frame.user.context;
  context.r8 = registers.r8;
  context.r9 = registers.r9;
  context.r10 = registers.r10;
  context.r11 = registers.r11;
  context.r12 = registers.r12;
  context.r13 = registers.r13;
  context.r14 = registers.r14;
  context.r15 = registers.r15;
  context.rdi = registers.rdi;
  context.rsi = registers.rsi;
  context.rbp = registers.rbp;
  context.rbx = registers.rbx;
  context.rdx = registers.rdx;
  context.rax = registers.rax;
  context.rcx = registers.rcx;
  context.rsp = registers.rsp;
  context.rip = registers.rip;
  context.rflags = registers.rflags | kFlagInterrupt;  // off in the monitor's steps on some hosts
  context.cs = TRAPLINE_USER_CS;
  context.ss = TRAPLINE_USER_SS;
  context.error_code = delivery.error_code;
  context.trap_number = delivery.trap_number;
  context.fault_address = delivery.fault_address;
  context.old_mask = saved_mask;
  context.vector_state = vector_at;
  frame.user.mask = saved_mask;
  frame.info = delivery.info;

  std::vector<char> image(vector_size + sizeof kMagic2);
  std::copy_n(vector_state, vector_size, image.data());
  VectorSoftwareBytes software{};
  software.magic1 = kMagic1;
  software.extended_size = static_cast<std::uint32_t>(vector_size + sizeof kMagic2);
  software.components = vector_mask;
  software.state_size = static_cast<std::uint32_t>(vector_size);
  std::memcpy(image.data() + kSoftwareBytesAt, &software, sizeof software);
  // x87 and SSE count as present, so that a handler that looks into the frame finds them.
  std::uint64_t present = 0;
  std::memcpy(&present, image.data() + kLegacySize, sizeof present);
  present |= 3;
  std::memcpy(image.data() + kLegacySize, &present, sizeof present);
  std::memcpy(image.data() + vector_size, &kMagic2, sizeof kMagic2);

  if (!WriteGuest(vector_at, image.data(), image.size()) || !WriteGuest(frame_at, frame))
    return false;

  if ((alternate_stack.flags & kAutoDisarm) != 0) alternate_stack = {};
  registers.rsp = frame_at;
  registers.rip = action.handler;
  registers.rdi = static_cast<std::uint64_t>(delivery.signal);
  registers.rsi = frame_at + offsetof(SignalFrame, info);
  registers.rdx = frame_at + offsetof(SignalFrame, user);
  registers.rax = 0;
  registers.rflags &= ~kFlagsClearedInHandler;
  return true;
}

bool PopSignalFrame(kvm_regs& registers, SignalMask& mask, AlternateStack& alternate_stack,
                    char* vector_state, std::size_t vector_size, std::uint64_t vector_mask) {
  SignalFrame frame;
  const std::uint64_t handler_rsp = registers.rsp;
  if (!ReadGuest(handler_rsp - 8, frame)) return false;
  const SignalContext& context = frame.user.context;
  registers.r8 = context.r8;
  registers.r9 = context.r9;
  registers.r10 = context.r10;
  registers.r11 = context.r11;
  registers.r12 = context.r12;
  registers.r13 = context.r13;
  registers.r14 = context.r14;
  registers.r15 = context.r15;
  registers.rdi = context.rdi;
  registers.rsi = context.rsi;
  registers.rbp = context.rbp;
  registers.rbx = context.rbx;
  registers.rdx = context.rdx;
  registers.rax = context.rax;
  registers.rcx = context.rcx;
  registers.rsp = context.rsp;
  registers.rip = context.rip;
  registers.rflags = (registers.rflags & ~kFlagsFromUser) | (context.rflags & kFlagsFromUser);
  mask = frame.user.mask & ~kUnblockable;
  // restore_altstack: what is not acceptable changes nothing. "On it" means the handler's stack
  // pointer.
  alternate_stack.Replace(frame.user.stack.sp, frame.user.stack.flags, frame.user.stack.size,
                          handler_rsp);

  InitializeVectorState(vector_state, vector_size);
  if (context.vector_state == 0) return true;
  std::vector<char> image(vector_size);
  if (context.vector_state % 64 != 0 || !ReadGuest(context.vector_state, image.data(), kLegacySize))
    return false;
  VectorSoftwareBytes software;
  std::memcpy(&software, image.data() + kSoftwareBytesAt, sizeof software);
  std::uint32_t magic2 = 0;
  const bool extended =
      software.magic1 == kMagic1 && software.state_size >= kLegacySize + kHeaderSize &&
      software.state_size <= vector_size &&
      ReadGuest(context.vector_state, image.data(), software.state_size) &&
      ReadGuest(context.vector_state + software.state_size, magic2) && magic2 == kMagic2;
  std::uint64_t present = 3;  // only x87 and SSE when the frame has no extended part
  if (extended) {
    std::memcpy(&present, image.data() + kLegacySize, sizeof present);
    present &= software.components & vector_mask;
  }
  std::memset(image.data() + kLegacySize, 0, kHeaderSize);
  std::memcpy(image.data() + kLegacySize, &present, sizeof present);
  // Reserved MXCSR bits would make xrstor fault.
  std::uint32_t mxcsr = 0;
  std::memcpy(&mxcsr, image.data() + kMxcsrAt, sizeof mxcsr);
  if ((mxcsr & ~0xffffu) != 0) return false;
  std::memset(image.data() + kMxcsrMaskAt, 0, 4);
  std::memcpy(vector_state, image.data(), vector_size);
  return true;
}

}  // namespace trapline
