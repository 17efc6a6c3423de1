// Steps through programs one instruction at a time and compares, at every one of them, the unwound
// stack with the stack of return addresses that calls and returns have left.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "symbols/modules.h"
#include "symbols/unwinder.h"

namespace trapline {
namespace {

std::string ReadMapsOf(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/maps", process));
  return {std::istreambuf_iterator<char>(file), {}};
}

bool ReadMemoryOf(void* process, std::uint64_t address, void* out, std::size_t size) {
  const iovec to = {out, size};
  const iovec from = {reinterpret_cast<void*>(address), size};
  return process_vm_readv(*static_cast<pid_t*>(process), &to, 1, &from, 1, 0) ==
         static_cast<ssize_t>(size);
}

// A program that runs under ptrace until it stops itself, and from there in steps.
class SteppedProgram {
 public:
  SteppedProgram(const std::string& path, std::vector<std::string> arguments) {
    process_ = fork();
    if (process_ == 0) {
      std::vector<char*> argv = {const_cast<char*>(path.c_str())};
      for (std::string& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      ptrace(PTRACE_TRACEME, 0, 0, 0);
      alarm(100);
      execv(path.c_str(), argv.data());
      _exit(127);
    }
    int status = Wait();
    ptrace(PTRACE_SETOPTIONS, process_, 0, PTRACE_O_EXITKILL);
    while (WIFSTOPPED(status) && WSTOPSIG(status) != SIGSTOP) {
      ptrace(PTRACE_CONT, process_, 0, 0);
      status = Wait();
    }
    stopped_ = WIFSTOPPED(status);
  }
  ~SteppedProgram() {
    kill(process_, SIGKILL);
    int status = 0;
    waitpid(process_, &status, 0);
  }
  SteppedProgram(const SteppedProgram&) = delete;
  SteppedProgram& operator=(const SteppedProgram&) = delete;

  bool stopped() const { return stopped_; }
  pid_t& process() { return process_; }

  // One instruction, or the delivery of a signal. False when the program stops itself or ends.
  bool Step() {
    ptrace(PTRACE_SINGLESTEP, process_, 0, signal_);
    delivered_ = signal_ != 0;
    signal_ = 0;
    const int status = Wait();
    if (!WIFSTOPPED(status)) return false;
    if (WSTOPSIG(status) == SIGSTOP) return false;
    if (WSTOPSIG(status) != SIGTRAP) signal_ = WSTOPSIG(status);
    return true;
  }
  // Whether the last step put a handler on the stack.
  bool delivered() const { return delivered_; }

  UnwindRegisters Registers() const {
    user_regs_struct registers;
    ptrace(PTRACE_GETREGS, process_, 0, &registers);
    UnwindRegisters result;
    result.rax = registers.rax;
    result.rdx = registers.rdx;
    result.rcx = registers.rcx;
    result.rbx = registers.rbx;
    result.rsi = registers.rsi;
    result.rdi = registers.rdi;
    result.rbp = registers.rbp;
    result.rsp = registers.rsp;
    result.r8 = registers.r8;
    result.r9 = registers.r9;
    result.r10 = registers.r10;
    result.r11 = registers.r11;
    result.r12 = registers.r12;
    result.r13 = registers.r13;
    result.r14 = registers.r14;
    result.r15 = registers.r15;
    result.rip = registers.rip;
    return result;
  }

 private:
  int Wait() const {
    int status = 0;
    waitpid(process_, &status, 0);
    return status;
  }

  pid_t process_ = -1;
  bool stopped_ = false, delivered_ = false;
  int signal_ = 0;
};

// The return addresses that are on the stack, as calls put them there.
class CallRecord {
 public:
  void Called(std::uint64_t slot, std::uint64_t return_address) {
    contexts_.back().calls.push_back({slot, return_address});
  }
  void Moved(std::uint64_t pc, std::uint64_t rsp) {
    if (contexts_.size() > 1 && pc == contexts_.back().pc && rsp == contexts_.back().rsp)
      contexts_.pop_back();
    auto& calls = contexts_.back().calls;
    while (!calls.empty() && calls.back().slot < rsp) calls.pop_back();
  }
  void Interrupted(std::uint64_t pc, std::uint64_t rsp, std::uint64_t slot,
                   std::uint64_t trampoline) {
    contexts_.push_back({{{slot, trampoline}}, pc, rsp});
  }
  // As Unwind has it, without the innermost.
  std::vector<std::uint64_t> ReturnAddresses() const {
    std::vector<std::uint64_t> pcs;
    for (std::size_t i = contexts_.size(); i-- > 0;) {
      const Context& context = contexts_[i];
      for (std::size_t j = context.calls.size(); j-- > 0;) {
        // A trampoline is no return address, although it stands where one would.
        const bool is_trampoline = i > 0 && j == 0;
        pcs.push_back(context.calls[j].return_address + (is_trampoline ? 1 : 0));
      }
      if (i > 0) pcs.push_back(context.pc + 1);
    }
    return pcs;
  }

 private:
  struct Call {
    std::uint64_t slot, return_address;
  };
  struct Context {
    std::vector<Call> calls;
    std::uint64_t pc, rsp;  // what was interrupted
  };
  std::vector<Context> contexts_ = {{}};
};

std::string Hexadecimal(const std::vector<std::uint64_t>& numbers) {
  std::string text;
  for (const std::uint64_t number : numbers) text += fmt::format(" {:#x}", number);
  return text;
}

// Whether the instruction at the last pc was a call, and so what is at rsp is a return address.
bool IsCall(const std::uint8_t* code, std::size_t& length) {
  std::size_t at = 0;
  while (code[at] == 0xf2 || code[at] == 0x3e || (code[at] & 0xf0) == 0x40 || code[at] == 0x67) {
    ++at;
  }
  if (code[at] == 0xe8) {
    length = at + 5;
    return true;
  }
  if (code[at] != 0xff || (code[at + 1] >> 3 & 7) != 2) return false;
  length = 0;
  return true;
}

// `tolerated`: the share of instructions at which the stack may be wrong.
void StepThrough(const std::string& path, std::vector<std::string> arguments, int least_steps,
                 double tolerated = 0) {
  SteppedProgram program(path, std::move(arguments));
  ASSERT_TRUE(program.stopped());
  const MemoryReader memory = {&ReadMemoryOf, &program.process()};
  ModulesOptions options;
  options.read_maps = [&] { return ReadMapsOf(program.process()); };
  options.memory = memory;
  Modules modules(options);
  Unwinder unwinder(modules);

  std::uint64_t space[256];
  const auto unwind = [&](const UnwindRegisters& registers) {
    const std::size_t depth = unwinder.Unwind(registers, memory, space);
    return std::vector<std::uint64_t>(space, space + depth);
  };

  UnwindRegisters registers = program.Registers();
  std::vector<std::uint64_t> stack = unwind(registers);
  EXPECT_GE(stack.size(), 4u);  // raise, main and what called it
  // The frames at the stop are left one by one: they count as called long ago.
  std::vector<StackFrame> frames(64);
  frames.resize(unwinder.UnwindFrames(registers, memory, frames));
  CallRecord record;
  for (std::size_t i = frames.size() - 1; i >= 1; --i)
    record.Called(frames[i - 1].cfa - 8, frames[i].pc);

  int steps = 0, wrong = 0;
  std::string first_wrong;
  for (; program.Step(); ++steps) {
    const UnwindRegisters before = registers;
    registers = program.Registers();
    if (program.delivered()) {
      std::uint64_t trampoline = 0;
      ASSERT_TRUE(memory(registers.rsp, &trampoline, 8));
      record.Interrupted(before.rip, before.rsp, registers.rsp, trampoline);
    } else {
      std::uint8_t code[16] = {};
      if (!memory(before.rip, code, sizeof code)) memory(before.rip, code, 4);
      std::size_t length = 0;
      std::uint64_t pushed = 0;
      if (registers.rsp == before.rsp - 8 && IsCall(code, length) &&
          memory(registers.rsp, &pushed, 8)) {
        record.Called(registers.rsp, pushed);
      }
      record.Moved(registers.rip, registers.rsp);
    }
    stack = unwind(registers);
    const std::vector<std::uint64_t> expected = record.ReturnAddresses();
    if (stack.empty() || stack[0] != registers.rip ||
        !std::equal(stack.begin() + 1, stack.end(), expected.begin(), expected.end())) {
      ++wrong;
      if (first_wrong.empty()) {
        const Module* module = modules.Find(registers.rip);
        first_wrong = fmt::format("at {:#x} ({}+{:#x}), rsp {:#x}: got{}, expected{}",
                                  registers.rip, module != nullptr ? module->name() : "?",
                                  module != nullptr ? registers.rip - module->bias : 0,
                                  registers.rsp, Hexadecimal(stack), Hexadecimal(expected));
      }
    }
  }
  EXPECT_LE(wrong, steps * tolerated) << first_wrong;
  EXPECT_GE(steps, least_steps);
  ::testing::Test::RecordProperty("steps", steps);
  ::testing::Test::RecordProperty("wrong", wrong);
}

constexpr int kLeastSteps = 4000;

// GCC does not describe the two instructions after which a realigned frame is left (lea, ret) when
// it does not optimise.
TEST(StepTest, Unoptimised) { StepThrough(FRAMES_DIRECTORY "/frames_O0", {}, kLeastSteps, 1e-4); }
TEST(StepTest, Optimised) { StepThrough(FRAMES_DIRECTORY "/frames_O2", {}, kLeastSteps); }
TEST(StepTest, WithFramePointers) { StepThrough(FRAMES_DIRECTORY "/frames_fp", {}, kLeastSteps); }
TEST(StepTest, Static) { StepThrough(FRAMES_DIRECTORY "/frames_static", {}, kLeastSteps); }
TEST(StepTest, BranchTracking) { StepThrough(FRAMES_DIRECTORY "/frames_cet", {}, kLeastSteps); }
TEST(StepTest, DebugFrameOnly) {
  StepThrough(FRAMES_DIRECTORY "/frames_debug_frame", {}, kLeastSteps);
}
// While an exception is caught, the C++ runtime overwrites the frames it is about to leave.
TEST(StepTest, Exceptions) {
  StepThrough(FRAMES_DIRECTORY "/frames_O2", {"exceptions"}, kLeastSteps, 2e-3);
}
// Frame pointers only: wrong in the few instructions at which rbp is not the frame's.
TEST(StepTest, WithoutFrameInformation) {
  StepThrough(FRAMES_DIRECTORY "/frames_nothing", {}, kLeastSteps, 0.01);
}

}  // namespace
}  // namespace trapline
