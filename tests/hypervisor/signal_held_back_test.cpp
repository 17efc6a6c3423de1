// The signals that the monitor's own writing may raise.
#include "hypervisor/signal_held_back.h"

#include <gtest/gtest.h>
#include <sys/ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace trapline {
namespace {

SignalMask Mask() {
  SignalMask mask = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, sizeof mask);
  return mask;
}

void SetMask(SignalMask mask) {
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
}

// As the host's handler does: the next signals wait until this one is delivered.
void Record(int /*signal*/, siginfo_t* /*info*/, void* context) {
  const SignalMask all = kAllSignals;
  std::memcpy(&static_cast<ucontext_t*>(context)->uc_sigmask, &all, sizeof all);
}

class SignalHeldBackTest : public testing::TestWithParam<SignalHeldBack::Others> {
 protected:
  void SetUp() override { before_ = Mask(); }
  void TearDown() override { SetMask(before_); }

  SignalMask before_ = 0;
};

TEST_P(SignalHeldBackTest, APipeWithoutAReaderIsAnErrorOnly) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  {
    const SignalHeldBack signal(SIGPIPE, GetParam());
    EXPECT_EQ(write(ends[1], "x", 1), -1);
  }
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(Mask(), before_);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
  close(ends[1]);
}

INSTANTIATE_TEST_SUITE_P(Others, SignalHeldBackTest,
                         testing::Values(SignalHeldBack::Others::kWait,
                                         SignalHeldBack::Others::kCome));

TEST_F(SignalHeldBackTest, WhoRecordsASignalMeanwhileHasTheOthersGoOnWaiting) {
  struct sigaction action {};
  struct sigaction former {};
  action.sa_sigaction = Record;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &former), 0);
  {
    const SignalHeldBack signal(SIGPIPE, SignalHeldBack::Others::kCome);
    raise(SIGUSR1);
  }
  EXPECT_EQ(Mask(), kAllSignals & ~kUnblockable);
  sigaction(SIGUSR1, &former, nullptr);
}

}  // namespace
}  // namespace trapline
