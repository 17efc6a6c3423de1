// The signal of a file that may grow no further.
#pragma once

#include <pthread.h>

#include <csignal>
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
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~FileSizeSignalHeldBack() {
    constexpr timespec kNow = {0, 0};
    if (!was_pending_) sigtimedwait(&signal_, nullptr, &kNow);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
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
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace trapline
