// A signal that the monitor's own writing may raise, and that is none of the program's: of a file
// that may grow no further, or of a pipe that nobody reads.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

#include "hypervisor/signals.h"

namespace trapline {

// While it lives, what this thread does to a file beyond the limit on its size (RLIMIT_FSIZE, as
// `ulimit -f` sets it: SIGXFSZ) or to a pipe without a reader (SIGPIPE) fails with an error, and
// the signal, which would end the process without a word, does not come. What is done with it
// belongs to the program and stays as it is.
class SignalHeldBack {
 public:
  // What becomes of all other signals meanwhile. Whoever may have to wait lets them come.
  enum class Others { kWait, kCome };

  explicit SignalHeldBack(int signal, Others others = Others::kWait)
      : signal_(signal), blocked_(others == Others::kWait ? kAllSignals : MaskOf(signal)) {
    sigset_t pending;
    was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, signal) == 1;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &blocked_, &before_, sizeof before_);
  }
  // Leaves errno, which tells how the write failed.
  ~SignalHeldBack() {
    const int error = errno;
    sigset_t alone;
    sigemptyset(&alone);
    sigaddset(&alone, signal_);
    constexpr timespec kNow = {0, 0};
    if (!was_pending_) sigtimedwait(&alone, nullptr, &kNow);
    // A signal that has been recorded meanwhile for the program has all others wait until it is
    // delivered (signals.cpp): then they go on waiting.
    SignalMask now = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &kAllSignals, &now, sizeof now);
    if ((now & ~before_ & ~blocked_) == 0)
      syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
    errno = error;
  }
  SignalHeldBack(const SignalHeldBack&) = delete;
  SignalHeldBack& operator=(const SignalHeldBack&) = delete;

 private:
  const int signal_;
  const SignalMask blocked_;
  SignalMask before_ = 0;  // as the kernel has it: the C library keeps two signals to itself
  bool was_pending_ = false;
};

}  // namespace trapline
