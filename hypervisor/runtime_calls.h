// The calls of known runtime functions that a thread of a statically linked program is in, and what
// they mean: the events the preload library would report.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hypervisor/static_runtime.h"
#include "translator/memory_access.h"

namespace trapline {

// Where the meaning goes. `kind` is an enum trapline_event_kind.
class RuntimeCallSink {
 public:
  RuntimeCallSink() = default;
  RuntimeCallSink(const RuntimeCallSink&) = delete;
  RuntimeCallSink& operator=(const RuntimeCallSink&) = delete;
  virtual ~RuntimeCallSink() = default;

  virtual void Event(std::uint64_t kind, std::uint64_t address, std::uint64_t size,
                     std::uint64_t ip) = 0;
  // An access of the caller; `caller`: its registers as they are when the call returns, but for the
  // result, with rip inside the call instruction.
  virtual void Access(std::uint64_t kind, std::uint64_t address, std::uint64_t size,
                      std::uint64_t ip, const RegisterFile& caller) = 0;
  // The number of the thread with this pthread_t.
  virtual std::optional<std::uint64_t> ThreadNumber(std::uint64_t pthread) = 0;
};

// Of one thread. A call begins at a RuntimeEntry and ends when the thread arrives at the return
// address with the stack pointer that belongs to it. Calls left by longjmp, by an exception or by
// cancellation are forgotten once the thread is seen in code of the program above them.
class RuntimeCalls {
 public:
  bool empty() const { return calls_.empty(); }
  void Clear() { calls_.clear(); }

  // The thread is about to carry out `instruction`, at registers.rip in the runtime's code.
  // `on_alternate_stack`: a signal handler's; nothing can be said about what lies above it.
  void BeforeRuntime(const StaticRuntime& runtime, const Instruction& instruction,
                     const RegisterFile& registers, bool on_alternate_stack, RuntimeCallSink& sink);
  // The thread is in the program's code.
  void InProgram(std::uint64_t rsp, bool on_alternate_stack, RuntimeCallSink& sink);
  // The thread has just got to `rip`; `rax` is the result if a call returned.
  void Arrived(const StaticRuntime& runtime, std::uint64_t rip, std::uint64_t rsp,
               std::uint64_t rax, bool on_alternate_stack, RuntimeCallSink& sink);

 private:
  struct Call {
    const RuntimeFunction* function = nullptr;
    std::uint64_t arguments[4] = {};
    std::uint64_t return_address = 0;
    std::uint64_t rsp = 0;  // at the function's first instruction: where the return address is
    bool counts = false;
    std::uint64_t value = 0;  // the event's size, the joined thread, the block's old size

    std::uint64_t object() const { return arguments[function->object]; }
  };

  void Enter(const StaticRuntime& runtime, const RuntimeEntry& entry, const RegisterFile& registers,
             bool on_alternate_stack, RuntimeCallSink& sink);
  bool Counts(const StaticRuntime& runtime, const Call& call) const;
  static void Begin(Call& call, const RegisterFile& registers, bool is_musl, RuntimeCallSink& sink);
  static void End(const Call& call, std::uint64_t rax, RuntimeCallSink& sink);
  static void Abandon(const Call& call, RuntimeCallSink& sink);

  std::vector<Call> calls_;  // outermost first
};

}  // namespace trapline
