// The signal of a file that may grow no further.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace trapline {

// While it lives, a write of this thread beyond the limit on the size of files (RLIMIT_FSIZE, as
// `ulimit -f` sets it) fails with EFBIG and has no SIGXFSZ, which would end the process without a
// word. What is done with the signal belongs to the program and stays as it is.
class FileSizeSignalHeldBack {
 public:
  FileSizeSignalHeldBack() {
    sigset_t pending;
    was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    // All of them: a signal that is recorded meanwhile for the program blocks the next ones by the
    // mask it returns to, which is put back in the end.
    constexpr std::uint64_t kAll = ~std::uint64_t{0};
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &kAll, &before_, sizeof before_);
  }
  // Leaves errno, which tells how the write failed.
  ~FileSizeSignalHeldBack() {
    const int error = errno;
    constexpr timespec kNow = {0, 0};
    if (!was_pending_) sigtimedwait(&signal_, nullptr, &kNow);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
    errno = error;
  }
  FileSizeSignalHeldBack(const FileSizeSignalHeldBack&) = delete;
  FileSizeSignalHeldBack& operator=(const FileSizeSignalHeldBack&) = delete;

 private:
  static sigset_t SignalAlone() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGXFSZ);
    return signals;
  }

  const sigset_t signal_ = SignalAlone();
  std::uint64_t before_ = 0;  // as the kernel has it: the C library keeps two signals to itself
  bool was_pending_ = false;
};

}  // namespace trapline
