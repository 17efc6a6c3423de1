#include "hypervisor/runtime_call_tracker.h"

#include <optional>

#include "hypervisor/tracking.h"

namespace trapline {
namespace {

// Hands on what a statically linked program's calls of its runtime mean.
class RuntimeCallReporter : public RuntimeCallSink {
 public:
  RuntimeCallReporter(Tracking& tracking, Carrier& carrier)
      : tracking_(tracking), carrier_(carrier) {}

  void Event(std::uint64_t kind, std::uint64_t address, std::uint64_t size,
             std::uint64_t ip) override {
    tracking_.OnRuntimeEvent(carrier_, kind, address, size, ip);
  }
  void Access(std::uint64_t kind, std::uint64_t address, std::uint64_t size, std::uint64_t ip,
              const RegisterFile& caller) override {
    tracking_.CheckRuntime(carrier_, kind, address, size, ip, caller);
  }
  std::optional<std::uint64_t> ThreadNumber(std::uint64_t pthread) override {
    return tracking_.ThreadByPointer(pthread);
  }

 private:
  Tracking& tracking_;
  Carrier& carrier_;
};

}  // namespace

void RuntimeCallTracker::InProgram(Tracking& tracking, std::uint64_t rsp) {
  RuntimeCallReporter reporter(tracking, carrier_);
  calls_.InProgram(rsp, alternate_stack_.Contains(rsp), reporter);
}

bool RuntimeCallTracker::LetThrough(Tracking& tracking, const Instruction& instruction,
                                    const RegisterFile& registers) {
  const StaticRuntime* const runtime = tracking.static_runtime();
  if (runtime == nullptr) return false;
  const bool on_alternate_stack = alternate_stack_.Contains(registers.gpr[kRsp]);
  RuntimeCallReporter reporter(tracking, carrier_);
  if (!runtime->IsRuntime(registers.rip)) {
    calls_.InProgram(registers.gpr[kRsp], on_alternate_stack, reporter);
    return false;
  }
  calls_.BeforeRuntime(*runtime, instruction, registers, on_alternate_stack, reporter);
  return true;
}

void RuntimeCallTracker::Arrived(Tracking& tracking, std::uint64_t rip, std::uint64_t rsp,
                                 std::uint64_t rax) {
  RuntimeCallReporter reporter(tracking, carrier_);
  calls_.Arrived(*tracking.static_runtime(), rip, rsp, rax, alternate_stack_.Contains(rsp),
                 reporter);
}

}  // namespace trapline
