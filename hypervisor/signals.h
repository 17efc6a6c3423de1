// Signals: the program's actions, the host's handlers that catch what the kernel sends, and the
// frames the program's handlers run on.
//
// The host thread under a guest thread always has the guest's signal mask, and a signal the program
// ignores or leaves alone has that disposition on the host too: the kernel itself does routing,
// default actions, stop and continue. Only signals with a handler come here: the host's handler
// records the signal, blocks all others, and makes the thread leave the guest (or a blocking system
// call); the thread then builds the frame.
#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <mutex>

#include "hypervisor/kvm.h"

namespace trapline {

using SignalMask = std::uint64_t;  // bit n-1 = signal n, as the kernel has it

constexpr SignalMask MaskOf(int signal) { return 1ull << (signal - 1); }
// The kernel never blocks these.
inline constexpr SignalMask kUnblockable = MaskOf(SIGKILL) | MaskOf(SIGSTOP);
inline constexpr SignalMask kAllSignals = ~0ull;

// struct sigaction as the system call has it.
struct KernelSigaction {
  std::uint64_t handler = 0;
  std::uint64_t flags = 0;
  std::uint64_t restorer = 0;
  SignalMask mask = 0;
};
static_assert(sizeof(KernelSigaction) == 32);

// A process's actions. Thread-safe.
class SignalActions {
 public:
  // Takes over what the process inherited: ignored or default.
  void Inherit();
  KernelSigaction Get(int signal) const;
  // Whether the program has a handler. Takes no lock: for the host's signal handler.
  bool HasHandler(int signal) const {
    return __atomic_load_n(&actions_[signal].handler, __ATOMIC_RELAXED) > 1;
  }
  // Sets the program's action and the host's to match.
  void Set(int signal, const KernelSigaction& action);
  // Sets the host's action again, should the monitor's C library have changed it.
  void Reapply(int signal);
  // Default action with no handler of the monitor's in between: what follows kills (or stops) as
  // natively.
  void SetHostDefault(int signal);
  // For a child process that shares memory: its actions change independently.
  void CopyFrom(const SignalActions& other);

 private:
  void Publish(int signal, const KernelSigaction& action);

  mutable std::mutex mutex_;
  std::array<KernelSigaction, 65> actions_{};
};

// Sets the calling host thread's mask.
void SetHostMask(SignalMask mask);

// A system call that a signal interrupts reliably; see host_calls.S. `pending` is the thread's
// flag. Returns the kernel's result or kRestart.
inline constexpr long kRestart = -512;
extern "C" long trapline_interruptible_syscall(long number, const std::uint64_t arguments[6],
                                               const volatile std::uint8_t* pending);

// Where the program's handler continues: registers, and where its frame is.
struct SignalDelivery {
  int signal = 0;
  siginfo_t info{};
  // Of the fault that caused it, for uc_mcontext; zero otherwise.
  std::uint64_t error_code = 0, trap_number = 0, fault_address = 0;
};

inline constexpr int kAutoDisarm = static_cast<int>(1u << 31);  // SS_AUTODISARM

struct AlternateStack {
  std::uint64_t sp = 0;
  int flags = SS_DISABLE;
  std::uint64_t size = 0;

  // Whether a thread with this stack pointer counts as being on it (on_sig_stack; never with
  // SS_AUTODISARM).
  bool Contains(std::uint64_t rsp) const {
    return (flags & (SS_DISABLE | kAutoDisarm)) == 0 && rsp > sp && rsp - sp <= size;
  }
  // sigaltstack(2): installs another one for a thread whose stack pointer is `rsp`. 0, or the
  // error; then nothing changes.
  int Replace(std::uint64_t wanted_sp, int wanted_flags, std::uint64_t wanted_size,
              std::uint64_t rsp);
};

// Writes the frame the kernel would write (arch/x86 rt_sigframe; System V ABI red zone kept) and
// changes `registers` to enter the handler. `vector_state`: XSAVE image of `vector_size` bytes.
// False: the stack cannot take the frame.
bool PushSignalFrame(kvm_regs& registers, const SignalDelivery& delivery,
                     const KernelSigaction& action, SignalMask saved_mask,
                     AlternateStack& alternate_stack, const char* vector_state,
                     std::size_t vector_size, std::uint64_t vector_mask);

// The reverse, for rt_sigreturn. `registers` holds the registers at the system call. False: no
// valid frame.
bool PopSignalFrame(kvm_regs& registers, SignalMask& mask, AlternateStack& alternate_stack,
                    char* vector_state, std::size_t vector_size, std::uint64_t vector_mask);

// Makes `vector_state` an image of the initial state.
void InitializeVectorState(char* vector_state, std::size_t vector_size);

}  // namespace trapline
