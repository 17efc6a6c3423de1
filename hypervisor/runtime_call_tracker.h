// Follows a thread of a statically linked program through its runtime's calls (runtime_calls.h),
// and hands on to Tracking what they mean.
#pragma once

#include <cstdint>

#include "hypervisor/machine.h"
#include "hypervisor/runtime_calls.h"
#include "hypervisor/signals.h"
#include "translator/instruction.h"
#include "translator/memory_access.h"

namespace trapline {

class Tracking;

// Of the thread that `carrier` runs; for the thread itself. Both references must outlive it. Where
// the program is not statically linked (Tracking::static_runtime()) there are no calls.
class RuntimeCallTracker {
 public:
  RuntimeCallTracker(Carrier& carrier, const AlternateStack& alternate_stack)
      : carrier_(carrier), alternate_stack_(alternate_stack) {}

  bool empty() const { return calls_.empty(); }
  void Clear() { calls_.Clear(); }

  // The thread is in the program's code, of a statically linked program.
  void InProgram(Tracking& tracking, std::uint64_t rsp);
  // Whether the instruction about to be let through belongs to the runtime inside a statically
  // linked program: then it is not checked, but may begin a call that means something.
  bool LetThrough(Tracking& tracking, const Instruction& instruction,
                  const RegisterFile& registers);
  // The thread has just got to `rip`, and there are calls; `rax` is the result if one returned.
  void Arrived(Tracking& tracking, std::uint64_t rip, std::uint64_t rsp, std::uint64_t rax);

 private:
  Carrier& carrier_;
  const AlternateStack& alternate_stack_;
  RuntimeCalls calls_;
};

}  // namespace trapline
