// Redirects in a virtual machine: which faults their gate leads on, and what it leaves behind where
// it does not.
#include "hypervisor/redirects.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "hypervisor/vcpu_registers.h"
#include "translator/cache_thread.h"

namespace trapline {
namespace {

constexpr std::uint64_t kStack = TRAPLINE_AGENT_STACK_TOP - 512;
constexpr std::uint64_t kGeneration = 7;

class RedirectsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      machine_ = std::make_unique<Machine>();
    } catch (const KvmError& error) {
      GTEST_SKIP() << "no usable KVM on this machine: " << error.what();
    }
    machine_->ShowCodeCache(false);
    carrier_ = &machine_->Acquire();
    carrier_->StartThread();
    machine_->EnterView(*carrier_, View::kClosed);
    redirects_ = std::make_unique<Redirects>(*machine_, RedirectRule::kAlways);
    redirects_->Clear(kGeneration);
    for (unsigned i = 0; i < 4; ++i) SetSlot(i, 0x1000 + i);
  }
  void TearDown() override {
    if (machine_ == nullptr) return;
    munmap(reinterpret_cast<void*>(TRAPLINE_CACHE_BASE), TRAPLINE_CACHE_END - TRAPLINE_CACHE_BASE);
    munmap(reinterpret_cast<void*>(kLowMirrorStart), kLowMirrorEnd - kLowMirrorStart);
  }

  static std::uint64_t Slot(unsigned i) { return kStack + 16 + std::uint64_t{i} * 24; }
  void SetSlot(unsigned i, std::uint64_t to) {
    std::memcpy(carrier_->ThreadRegion(Slot(i)), &to, sizeof to);
  }
  // The call stack as it is now, innermost first.
  std::vector<CallFrame> Frames(unsigned count) {
    std::vector<CallFrame> frames(count);
    for (unsigned i = 0; i < count; ++i) {
      frames[i].slot = Slot(i);
      std::memcpy(&frames[i].return_address, carrier_->ThreadRegion(Slot(i)), 8);
    }
    return frames;
  }
  static std::uint64_t Fault() {
    return agent::GuestAddressOf(trapline_agent_probe_redirect_fault);
  }
  static std::uint64_t Cached() { return agent::GuestAddressOf(trapline_agent_probe_redirected); }
  void Add(const std::vector<CallFrame>& frames, std::uint64_t rip = Fault()) {
    redirects_->Add(redirects_->version(), rip, kStack, Cached(), frames);
  }

  // Runs native code from `rip` on, up to where it leaves the guest.
  void RunNatively(std::uint64_t rip, std::uint64_t rsp, kvm_regs registers = {}) {
    machine_->EnterView(*carrier_, View::kClosed);
    agent::ThreadPage& page = carrier_->thread_page();
    page.native = 1;
    page.redirect.entered = 0;
    registers.rip = rip;
    registers.rsp = rsp;
    registers.rdi = 1;
    registers.rflags |= 0x202;
    carrier_->vcpu().registers() = registers;
    carrier_->vcpu().MarkRegistersDirty();
    ASSERT_EQ(carrier_->vcpu().Run(), 0);
  }
  static std::uint64_t Probe() { return agent::GuestAddressOf(trapline_agent_probe_redirect); }

  // One fault. True: it was led on; false: it left the guest with the registers it came with.
  bool IsRedirected(std::uint64_t rsp = kStack) {
    agent::ThreadPage& page = carrier_->thread_page();
    page.redirect.stay = 1234;
    kvm_regs registers{};
    registers.rax = 0xa00;
    registers.rcx = 0xa01;
    registers.rdx = 0xa02;
    registers.rsi = 0xa03;
    registers.r8 = 0xa08;
    registers.r9 = 0xa09;
    registers.r10 = 0xa0a;
    registers.r11 = 0xa0b;
    RunNatively(Probe(), rsp, registers);
    EXPECT_EQ(carrier_->vcpu().run().exit_reason, KVM_EXIT_IO);
    const auto port = carrier_->vcpu().run().io.port;
    const kvm_regs& after = carrier_->vcpu().registers();
    EXPECT_EQ(std::vector({after.rax, after.rcx, after.rdx, after.rsi, after.r8, after.r9,
                           after.r10, after.r11}),
              (std::vector<__u64>{0xa00, 0xa01, 0xa02, 0xa03, 0xa08, 0xa09, 0xa0a, 0xa0b}));
    if (port == TRAPLINE_PORT_PROBE) {
      EXPECT_EQ(after.rsp, rsp);
      EXPECT_EQ(page.redirect.entered, kGeneration);
      EXPECT_EQ(page.redirect.rip, Fault());
      EXPECT_EQ(page.native, 0u);
      EXPECT_EQ(Thread().leave_after, 1234);
      return true;
    }
    EXPECT_EQ(port, TRAPLINE_PORT_EXCEPTION);
    EXPECT_EQ(carrier_->InterruptFrameOf(true).rip, Fault());
    EXPECT_EQ(carrier_->InterruptFrameOf(true).rsp, rsp);
    EXPECT_EQ(page.redirect.entered, 0u);
    EXPECT_EQ(page.native, 1u);
    return false;
  }
  CacheThread& Thread() {
    return *static_cast<CacheThread*>(carrier_->ThreadRegion(TRAPLINE_CACHE_THREAD));
  }

  std::unique_ptr<Machine> machine_;
  Carrier* carrier_ = nullptr;
  std::unique_ptr<Redirects> redirects_;
};

TEST_F(RedirectsTest, LeadsOnAndKnowsTheCallStack) {
  Add(Frames(3));
  ASSERT_TRUE(IsRedirected());
  EXPECT_EQ(Thread().frames[0].inverse_slot, 0u);
  for (unsigned i = 0; i < 3; ++i) {  // outermost first
    EXPECT_EQ(~Thread().frames[1 + i].inverse_slot, Slot(2 - i));
    EXPECT_EQ(Thread().frames[1 + i].return_address, 0x1000u + 2 - i);
  }
  EXPECT_EQ(Thread().next_frame, TRAPLINE_CACHE_THREAD + 4 * sizeof(ShadowFrame));
}

TEST_F(RedirectsTest, LeadsOnFromNowhere) {
  Add({});
  EXPECT_TRUE(IsRedirected());
  EXPECT_EQ(Thread().next_frame, TRAPLINE_CACHE_THREAD + sizeof(ShadowFrame));
}

TEST_F(RedirectsTest, NotFromElsewhere) {
  Add(Frames(1), Fault() + 1);
  Add(Frames(1), Fault() + (1 << 20));
  EXPECT_FALSE(IsRedirected());
}

TEST_F(RedirectsTest, OtherCallersAreOtherRedirects) {
  Add(Frames(3));
  SetSlot(2, 0x2000);
  EXPECT_FALSE(IsRedirected());
  Add(Frames(3));
  EXPECT_TRUE(IsRedirected());
  EXPECT_EQ(Thread().frames[1].return_address, 0x2000u);
  SetSlot(2, 0x1002);
  EXPECT_TRUE(IsRedirected());
  EXPECT_EQ(Thread().frames[1].return_address, 0x1002u);
  EXPECT_FALSE(IsRedirected(kStack + 8));
}

TEST_F(RedirectsTest, NotWhereTheThreadIsNot) {
  Add(Frames(1));
  EXPECT_TRUE(IsRedirected());
  // `enabled` is the probe's own otherwise.
  const auto port = [&](bool enabled, std::uint64_t flags) {
    carrier_->thread_page().redirect.enabled = enabled ? 1 : 0;
    kvm_regs registers{};
    registers.rflags = flags;
    RunNatively(Fault(), kStack, registers);
    return carrier_->vcpu().run().io.port;
  };
  EXPECT_EQ(port(true, 0), TRAPLINE_PORT_PROBE);
  EXPECT_EQ(port(false, 0), TRAPLINE_PORT_EXCEPTION);
  EXPECT_EQ(port(true, kFlagTrap), TRAPLINE_PORT_EXCEPTION);  // single-stepped: the monitor's
}

TEST_F(RedirectsTest, NoneIsLeftWhenTheCodeIsGone) {
  const std::uint64_t version = redirects_->version();
  Add(Frames(2));
  redirects_->Clear(kGeneration);
  EXPECT_FALSE(IsRedirected());
  redirects_->Add(version, Fault(), kStack, Cached(), Frames(2));  // found before
  EXPECT_FALSE(IsRedirected());
  Add(Frames(2));
  EXPECT_TRUE(IsRedirected());
}

// What leads to pages that are not shared is given up, and not added again.
TEST_F(RedirectsTest, MisleadingOnesAreGivenUp) {
  Add(Frames(2));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(IsRedirected());
  const std::uint64_t by = carrier_->thread_page().redirect.by;
  for (int i = 0; i < 8; ++i) redirects_->CountMisled(by);
  EXPECT_FALSE(IsRedirected());
  Add(Frames(2));
  EXPECT_FALSE(IsRedirected());
  redirects_->CountMisled(0);  // nowhere: ignored
}

TEST_F(RedirectsTest, FullSetsAreEmptiedInTheEnd) {
  for (std::uint64_t i = 0; i < 8; ++i) {
    SetSlot(0, i);
    Add(Frames(1));
  }
  EXPECT_FALSE(IsRedirected());  // no room
  for (int i = 0; i < 100; ++i) Add(Frames(1));
  EXPECT_TRUE(IsRedirected());
  // Too deep.
  SetSlot(0, 99);
  Add(std::vector<CallFrame>(agent::RedirectMemory::kMostFrames + 1, Frames(1)[0]));
  EXPECT_FALSE(IsRedirected());
}

// A stack that is not there: the fault in the gate leaves, the first one's registers remembered.
TEST_F(RedirectsTest, AStackOutOfView) {
  Add(Frames(1));
  constexpr std::uint64_t kNowhere = 0x123450000;
  agent::ThreadPage& page = carrier_->thread_page();
  kvm_regs registers{};
  registers.rcx = 0xa01;
  RunNatively(Probe(), kNowhere, registers);
  EXPECT_EQ(carrier_->vcpu().run().io.port, TRAPLINE_PORT_EXCEPTION);
  const agent::InterruptFrame& frame = carrier_->InterruptFrameOf(true);
  EXPECT_GT(frame.rip, agent::GuestAddressOf(trapline_agent_redirect_saved));
  EXPECT_LT(frame.rip, agent::GuestAddressOf(trapline_agent_redirect_end));
  EXPECT_EQ(page.redirect.rip, Fault());
  EXPECT_EQ(page.redirect.rsp, kNowhere);
  const auto* saved = reinterpret_cast<const agent::RedirectRegisters*>(
                          reinterpret_cast<const char*>(&frame) - sizeof(std::uint64_t)) -
                      1;
  EXPECT_EQ(saved->rcx, 0xa01u);
  EXPECT_EQ(page.native, 1u);
}

TEST_F(RedirectsTest, GateOpensWhereMostFaultsWouldBeLedOn) {
  redirects_ = std::make_unique<Redirects>(*machine_, RedirectRule::kWherePaying);
  redirects_->Clear(kGeneration);
  const auto is_open = [&] {
    RunNatively(Probe(), kStack);
    return carrier_->vcpu().run().exit_reason == KVM_EXIT_IO &&
           carrier_->vcpu().run().io.port == TRAPLINE_PORT_PROBE;
  };
  Add(Frames(1));
  EXPECT_FALSE(is_open());
  for (int i = 0; i < 600; ++i) {  // known ones, each of which the monitor has had to lead on
    redirects_->CountFault();
    Add(Frames(1));
  }
  EXPECT_TRUE(is_open());
  for (int i = 0; i < 600; ++i) redirects_->CountFault();
  EXPECT_FALSE(is_open());
}

TEST_F(RedirectsTest, MeasuringLeavesNothingBehind) {
  EXPECT_GT(machine_->MeasureRedirect(*carrier_, 8), 0u);
  EXPECT_GT(machine_->MeasureRedirect(*carrier_, 0), 0u);
  EXPECT_GT(machine_->MeasureFault(*carrier_), 0u);
}

}  // namespace
}  // namespace trapline
