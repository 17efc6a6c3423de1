// The running kernel is the reference: every broken file is executed natively in a child and must
// fare as the reader predicts.
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "hypervisor/elf/elf_image.h"
#include "tests/elf/elf_file.h"

namespace trapline {
namespace {

using testing::BrokenElf;
using testing::kTinyExitStatus;
using testing::MakeTinyElf;
using testing::OpenBytes;
using testing::TinyElf;

struct NativeResult {
  int exec_errno = 0;  // not 0: execve failed and the child lived on
  int wait_status = 0;

  std::string Describe() const {
    if (exec_errno != 0) return fmt::format("execve: {}", std::strerror(exec_errno));
    if (WIFSIGNALED(wait_status)) return fmt::format("signal {}", WTERMSIG(wait_status));
    return fmt::format("exit {}", WEXITSTATUS(wait_status));
  }
};

NativeResult RunNatively(int fd) {
  NativeResult result;
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  std::array<char*, 1> nothing = {nullptr};
  pid_t child = 0;
  // posix_spawn does not copy this process, and gives the errno of the failed execve.
  result.exec_errno =
      posix_spawn(&child, path.c_str(), nullptr, nullptr, nothing.data(), nothing.data());
  if (result.exec_errno != 0) return result;
  // A mutated program may well loop.
  const rlimit one_second = {1, 1};
  prlimit(child, RLIMIT_CPU, &one_second, nullptr);
  if (waitpid(child, &result.wait_status, 0) != child) std::abort();
  return result;
}

// The reader's prediction for a program, with its interpreter if it has one.
struct Prediction {
  enum { kRuns, kRefused, kLost } outcome;
  int error_number;
  std::string message;
};

Prediction FromError(const ElfError& error) {
  return {error.outcome == ElfError::Outcome::kRefused ? Prediction::kRefused : Prediction::kLost,
          error.error_number, error.message};
}

Prediction Predict(int fd) {
  const auto image = ReadElfImage(fd);
  if (!image) return FromError(image.error());
  if (!image->interpreter) return {Prediction::kRuns, 0, ""};
  // Natively an empty path is the working directory.
  const std::string path = image->interpreter->empty() ? "." : *image->interpreter;
  const int interpreter = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (interpreter < 0) return {Prediction::kRefused, errno, "interpreter: open"};
  const int denied = CheckExecutable(interpreter);
  const auto interpreter_image = ReadElfImage(interpreter, ElfRole::kInterpreter);
  close(interpreter);
  if (denied != 0) return {Prediction::kRefused, denied, "interpreter: may not be executed"};
  if (!interpreter_image) return FromError(interpreter_image.error());
  return {Prediction::kRuns, 0, ""};
}

// Counts how often each outcome was seen, so that a test can insist on having met all.
struct Tally {
  int runs = 0;
  int refused = 0;
  int lost = 0;
};

void Compare(const std::string& what, int fd, const Prediction& predicted, Tally& tally) {
  const NativeResult native = RunNatively(fd);
  const std::string context =
      fmt::format("{}: natively {}; predicted {} {} ({})", what, native.Describe(),
                  static_cast<int>(predicted.outcome), predicted.error_number, predicted.message);
  switch (predicted.outcome) {
    case Prediction::kRefused:
      EXPECT_EQ(native.exec_errno, predicted.error_number) << context;
      ++tally.refused;
      break;
    case Prediction::kLost:
      EXPECT_EQ(native.exec_errno, 0) << context;
      ASSERT_TRUE(WIFSIGNALED(native.wait_status)) << context;
      EXPECT_EQ(WTERMSIG(native.wait_status), SIGSEGV) << context;
      ++tally.lost;
      break;
    case Prediction::kRuns:
      EXPECT_EQ(native.exec_errno, 0) << context;
      if (WIFEXITED(native.wait_status) && native.exec_errno == 0) ++tally.runs;
      break;
  }
}

void CompareAll(const std::vector<BrokenElf>& files, Tally& tally) {
  for (const BrokenElf& broken : files) {
    const int fd = OpenBytes(broken.bytes);
    ASSERT_GE(fd, 0);
    Compare(broken.what, fd, Predict(fd), tally);
    close(fd);
  }
}

// A directory of its own for named files.
class NativeElf : public ::testing::Test {
 protected:
  void SetUp() override {
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);  // inherited by the programs
    ASSERT_NE(mkdtemp(directory_.data()), nullptr);
  }
  void TearDown() override {
    unlink(Path().c_str());
    rmdir(directory_.data());
  }
  std::string Path() const { return std::string(directory_.data()) + "/ld"; }
  void WriteInterpreter(const std::vector<uint8_t>& bytes) const {
    const int fd = open(Path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    ASSERT_GE(fd, 0);
    EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    close(fd);
  }

 private:
  std::array<char, 32> directory_ = {"/tmp/trapline-elf-XXXXXX"};
};

TEST_F(NativeElf, WholeFilesRun) {
  WriteInterpreter(MakeTinyElf(ET_DYN).Bytes());
  for (const TinyElf& elf : {MakeTinyElf(ET_EXEC), MakeTinyElf(ET_DYN),
                             MakeTinyElf(ET_EXEC, Path()), MakeTinyElf(ET_DYN, Path())}) {
    const int fd = OpenBytes(elf.Bytes());
    EXPECT_EQ(Predict(fd).outcome, Prediction::kRuns);
    EXPECT_EQ(RunNatively(fd).Describe(), fmt::format("exit {}", kTinyExitStatus));
    close(fd);
  }
}

TEST_F(NativeElf, FieldMutations) {
  Tally tally;
  CompareAll(testing::FieldMutations(MakeTinyElf(ET_EXEC)), tally);
  CompareAll(testing::FieldMutations(MakeTinyElf(ET_DYN)), tally);
  EXPECT_GT(tally.runs, 100);
  EXPECT_GT(tally.refused, 50);
  EXPECT_GT(tally.lost, 50);
}

TEST_F(NativeElf, ByteMutations) {
  Tally tally;
  CompareAll(testing::ByteMutations(MakeTinyElf(ET_EXEC)), tally);
  EXPECT_GT(tally.runs, 100);
  EXPECT_GT(tally.refused, 50);
  EXPECT_GT(tally.lost, 50);
}

TEST_F(NativeElf, Truncations) {
  Tally tally;
  CompareAll(testing::Truncations(MakeTinyElf(ET_EXEC)), tally);
  EXPECT_GT(tally.refused, 200);
  EXPECT_GT(tally.lost, 10);
}

TEST_F(NativeElf, ProgramsWithAnInterpreter) {
  WriteInterpreter(MakeTinyElf(ET_DYN).Bytes());
  Tally tally;
  CompareAll(testing::FieldMutations(MakeTinyElf(ET_DYN, Path())), tally);
  EXPECT_GT(tally.runs, 100);
  EXPECT_GT(tally.refused, 50);
}

TEST_F(NativeElf, BrokenInterpreters) {
  const int program = OpenBytes(MakeTinyElf(ET_EXEC, Path()).Bytes());
  Tally tally;
  // The program may lie where a fixed interpreter would: position independent ones only.
  const TinyElf interpreter = MakeTinyElf(ET_DYN);
  for (auto mutate : {testing::FieldMutations, testing::Truncations}) {
    for (const BrokenElf& broken : mutate(interpreter)) {
      WriteInterpreter(broken.bytes);
      Compare("interpreter " + broken.what, program, Predict(program), tally);
    }
  }
  close(program);
  EXPECT_GT(tally.runs, 100);
  EXPECT_GT(tally.refused, 50);
  EXPECT_GT(tally.lost, 50);
}

TEST_F(NativeElf, MissingAndForbiddenInterpreter) {
  Tally tally;
  const int program = OpenBytes(MakeTinyElf(ET_EXEC, Path()).Bytes());
  EXPECT_EQ(Predict(program).error_number, ENOENT);
  Compare("missing", program, Predict(program), tally);
  WriteInterpreter(MakeTinyElf(ET_DYN).Bytes());
  chmod(Path().c_str(), 0644);
  EXPECT_EQ(Predict(program).error_number, EACCES);
  Compare("forbidden", program, Predict(program), tally);
  close(program);
}

// Several fields at once: what one mutation hides another may show.
TEST_F(NativeElf, RandomCombinations) {
  std::mt19937 random(20240611);  // NOLINT: the same files on every run
  const TinyElf elf = MakeTinyElf(ET_EXEC);
  const std::vector<uint8_t> whole = elf.Bytes();
  const std::vector<BrokenElf> single = testing::FieldMutations(elf);
  std::vector<BrokenElf> files;
  for (int i = 0; i < 500; ++i) {
    BrokenElf combined{"", whole};
    for (int j = 0; j < 3; ++j) {
      const BrokenElf& part = single[random() % single.size()];
      combined.what += part.what + "; ";
      for (size_t k = 0; k < whole.size(); ++k) {
        if (part.bytes[k] != whole[k]) combined.bytes[k] = part.bytes[k];
      }
    }
    files.push_back(std::move(combined));
  }
  Tally tally;
  CompareAll(files, tally);
  EXPECT_GT(tally.refused, 50);
  EXPECT_GT(tally.lost, 50);
}

}  // namespace
}  // namespace trapline
