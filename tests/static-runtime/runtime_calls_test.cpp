// What a thread's calls of its runtime are reported as, in which order, and what becomes of calls
// that never return.
#include "hypervisor/runtime_calls.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "guest-agent/events.h"
#include "tests/static-runtime/symbols.h"

namespace trapline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Report {
  std::uint64_t kind, address, size;
  bool operator==(const Report&) const = default;
};

void PrintTo(const Report& report, std::ostream* out) {
  *out << report.kind << "(" << std::hex << report.address << ", " << std::dec << report.size
       << ")";
}

class Recorder : public RuntimeCallSink {
 public:
  void Event(std::uint64_t kind, std::uint64_t address, std::uint64_t size,
             std::uint64_t ip) override {
    reports.push_back({kind, address, size});
    last_ip = ip;
  }
  void Access(std::uint64_t kind, std::uint64_t address, std::uint64_t size, std::uint64_t ip,
              const RegisterFile& caller) override {
    reports.push_back({kind, address, size});
    last_ip = ip;
    last_caller = caller;
  }
  std::optional<std::uint64_t> ThreadNumber(std::uint64_t pthread) override {
    if (pthread != kKnownThread) return std::nullopt;
    return 7;
  }

  static constexpr std::uint64_t kKnownThread = 0x7000;
  std::vector<Report> reports;
  std::uint64_t last_ip = 0;
  RegisterFile last_caller;
};

std::uint64_t AddressOf(const void* object) { return reinterpret_cast<std::uint64_t>(object); }

class RuntimeCallsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string path = std::string(TRAPLINE_STATIC_PROGRAMS) + "/static_program_debug_o2";
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    runtime_ = StaticRuntime::Read(fd, 0).release();
    close(fd);
    functions_ = new std::map<std::string, std::uint64_t>(FunctionsOf(path));
  }

  void SetUp() override { ASSERT_NE(runtime_, nullptr); }

  // Calls `name` with the stack slot `depth` (0 is outermost); from the program, or from `caller`.
  void Call(const std::string& name, std::vector<std::uint64_t> arguments, unsigned depth = 0,
            const std::string& caller = "main") {
    const std::uint64_t function = functions_->at(name);
    std::uint64_t at = function;
    while (at < function + 100 && runtime_->EntryAt(at) == nullptr) ++at;
    const RuntimeEntry* const entry = runtime_->EntryAt(at);
    ASSERT_NE(entry, nullptr) << name;
    const std::uint64_t slot = SlotOf(depth);
    const std::uint64_t return_address = functions_->at(caller) + 5;
    std::memcpy(reinterpret_cast<void*>(slot), &return_address, sizeof return_address);
    RegisterFile registers;
    registers.rip = at;
    registers.gpr[kRsp] = slot - entry->depth;
    registers.fs_base = kSelf;
    constexpr std::uint8_t kRegisters[] = {kRdi, kRsi, kRdx, kRcx};
    for (std::size_t i = 0; i < arguments.size(); ++i) registers.gpr[kRegisters[i]] = arguments[i];
    calls_.BeforeRuntime(*runtime_, Instruction{}, registers, false, sink_);
  }
  void Return(std::uint64_t result, unsigned depth = 0, const std::string& caller = "main") {
    calls_.Arrived(*runtime_, functions_->at(caller) + 5, SlotOf(depth) + 8, result, false, sink_);
  }
  std::uint64_t SlotOf(unsigned depth) const { return AddressOf(&stack_[kSlots - 4 - 8 * depth]); }

  static constexpr std::size_t kSlots = 128;
  static constexpr std::uint64_t kSelf = 0x9000;
  static const StaticRuntime* runtime_;
  static std::map<std::string, std::uint64_t>* functions_;
  std::uint64_t stack_[kSlots] = {};
  RuntimeCalls calls_;
  Recorder sink_;
};

const StaticRuntime* RuntimeCallsTest::runtime_ = nullptr;
std::map<std::string, std::uint64_t>* RuntimeCallsTest::functions_ = nullptr;

TEST_F(RuntimeCallsTest, LockIsTakenAfterAndGivenBackBefore) {
  Call("pthread_mutex_lock", {0x5000});
  EXPECT_THAT(sink_.reports, IsEmpty());
  Return(0);
  EXPECT_THAT(sink_.reports, ElementsAre(Report{TRAPLINE_ACQUIRE, 0x5000, TRAPLINE_LOCK_MUTEX}));
  EXPECT_EQ(sink_.last_ip, functions_->at("main") + 5);
  EXPECT_TRUE(calls_.empty());
  sink_.reports.clear();
  Call("__pthread_mutex_unlock_usercnt", {0x5000});
  EXPECT_THAT(sink_.reports, ElementsAre(Report{TRAPLINE_RELEASE, 0x5000, TRAPLINE_LOCK_MUTEX}));
  Return(0);
  EXPECT_EQ(sink_.reports.size(), 1u);
}

TEST_F(RuntimeCallsTest, FailedLockIsNotTakenADeadOwnersIs) {
  Call("pthread_mutex_lock", {0x5000});
  Return(EDEADLK);
  EXPECT_THAT(sink_.reports, IsEmpty());
  Call("pthread_mutex_lock", {0x5000});
  Return(0xffffffff00000000 | EOWNERDEAD);  // the upper half of an int result means nothing
  EXPECT_EQ(sink_.reports.size(), 1u);
}

TEST_F(RuntimeCallsTest, LibrarysOwnLocksDoNotCountThoseOfTheCxxLibraryDo) {
  Call("pthread_mutex_lock", {0x5000}, 0, "exit");
  Return(0, 0, "exit");
  EXPECT_THAT(sink_.reports, IsEmpty());
  Call("pthread_join", {Recorder::kKnownThread}, 0, "_ZNSt6thread4joinEv");
  Return(0, 0, "_ZNSt6thread4joinEv");
  EXPECT_THAT(sink_.reports, ElementsAre(Report{TRAPLINE_JOIN, 7, 0}));
}

TEST_F(RuntimeCallsTest, JoinOfAnUnknownThreadSaysNothing) {
  Call("pthread_join", {0x1234});
  Return(0);
  EXPECT_THAT(sink_.reports, IsEmpty());
}

TEST_F(RuntimeCallsTest, ReaderAndWriterGiveBackWhatTheyHold) {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  const std::uint64_t address = AddressOf(&lock);
  pthread_rwlock_rdlock(&lock);
  Call("pthread_rwlock_unlock", {address});
  Return(0);
  pthread_rwlock_unlock(&lock);
  pthread_rwlock_wrlock(&lock);
  Call("pthread_rwlock_unlock", {address});
  Return(0);
  pthread_rwlock_unlock(&lock);
  EXPECT_THAT(sink_.reports,
              ElementsAre(Report{TRAPLINE_RELEASE_SHARED, address, TRAPLINE_LOCK_RWLOCK},
                          Report{TRAPLINE_RELEASE, address, TRAPLINE_LOCK_RWLOCK}));
}

TEST_F(RuntimeCallsTest, BlockIsReportedOnceForTheOutermostCall) {
  Call("_Znwm", {24});
  Call("malloc", {24}, 1, "_Znwm");
  Return(0x6000, 1, "_Znwm");
  EXPECT_THAT(sink_.reports, IsEmpty());
  Return(0x6000);
  EXPECT_THAT(sink_.reports, ElementsAre(Report{TRAPLINE_ALLOCATE, 0x6000, 24}));
  EXPECT_EQ(sink_.last_ip, functions_->at("main") + 5);
}

TEST_F(RuntimeCallsTest, BlocksTheLibraryAllocatesAreReported) {
  Call("malloc", {100}, 0, "exit");
  Return(0x6000, 0, "exit");
  EXPECT_THAT(sink_.reports, ElementsAre(Report{TRAPLINE_ALLOCATE, 0x6000, 100}));
}

TEST_F(RuntimeCallsTest, FreeTellsTheUsableSize) {
  char* const block = static_cast<char*>(std::malloc(100));
  Call("free", {AddressOf(block)});
  EXPECT_THAT(sink_.reports, ElementsAre(Report{TRAPLINE_FREE, AddressOf(block), 104}));
  std::free(block);
}

TEST_F(RuntimeCallsTest, CopiesAreAccessesOfTheProgramOnly) {
  Call("__memmove_avx_unaligned_erms", {0x6000, 0x7000, 50});
  EXPECT_THAT(sink_.reports,
              ElementsAre(Report{TRAPLINE_READ, 0x7000, 50}, Report{TRAPLINE_WRITE, 0x6000, 50}));
  // As the caller's frame will be, to find its stack from.
  EXPECT_EQ(sink_.last_caller.rip, functions_->at("main") + 4);
  EXPECT_EQ(sink_.last_caller.gpr[kRsp], SlotOf(0) + 8);
  Return(0x6000);
  Call("__memmove_avx_unaligned_erms", {0x6000, 0x7000, 50}, 0, "_ZNSt6thread4joinEv");
  EXPECT_EQ(sink_.reports.size(), 2u);
}

TEST_F(RuntimeCallsTest, StringsAreReadThroughTheirEnd) {
  const char text[] = "four";
  Call("__strlen_avx2", {AddressOf(text)});
  EXPECT_THAT(sink_.reports, ElementsAre(Report{TRAPLINE_READ, AddressOf(text), 5}));
}

TEST_F(RuntimeCallsTest, ALaterFirstAccessIsTheSameCall) {
  Call("__pthread_mutex_unlock_usercnt", {0x5000});
  Call("__pthread_mutex_unlock_usercnt", {0x5000});
  EXPECT_EQ(sink_.reports.size(), 1u);
}

TEST_F(RuntimeCallsTest, CallsLeftByALongJumpAreForgotten) {
  Call("malloc", {1}, 3);
  calls_.InProgram(SlotOf(3) - 64, false, sink_);
  EXPECT_FALSE(calls_.empty());  // a signal handler
  calls_.InProgram(SlotOf(0), true, sink_);
  EXPECT_FALSE(calls_.empty());  // a signal handler on another stack
  calls_.InProgram(SlotOf(0), false, sink_);
  EXPECT_TRUE(calls_.empty());
  EXPECT_THAT(sink_.reports, IsEmpty());
}

TEST_F(RuntimeCallsTest, ANewCallForgetsWhatLiesBelow) {
  Call("malloc", {1}, 3);
  Call("malloc", {2}, 1);
  Return(0x6000, 1);
  EXPECT_TRUE(calls_.empty());
  EXPECT_THAT(sink_.reports, ElementsAre(Report{TRAPLINE_ALLOCATE, 0x6000, 2}));
}

}  // namespace
}  // namespace trapline
