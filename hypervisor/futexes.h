// Threads that wait at futexes in the kernel, counted in memory that the agent sees: a wake where
// nobody waits need not leave the guest (docs/monitor.md, "Futexes").
#pragma once

#include <cstdint>

#include "hypervisor/machine.h"
#include "hypervisor/system_calls.h"

namespace trapline {

// Lives around a system call of the program's that the host thread makes: who may wait in it is
// counted, also if it is interrupted. Calls that wait in ways that cannot be counted, or let those
// who do wait elsewhere, end the counting for the life of the process.
class FutexWaiter {
 public:
  FutexWaiter(Carrier& carrier, const SystemCall& call);
  ~FutexWaiter();
  FutexWaiter(const FutexWaiter&) = delete;
  FutexWaiter& operator=(const FutexWaiter&) = delete;

 private:
  std::uint32_t* count_ = nullptr;  // null: it does not wait
};

// The threads that need a processor are counted: whoever wants to look at a word for a while only
// does so if there is one for all of them. While it lives there are `number` more: one where a
// thread of the program's runs, one less around its system calls, none for what shares the memory
// alone.
class CountedThread {
 public:
  CountedThread(Carrier& carrier, int number);
  ~CountedThread();
  CountedThread(const CountedThread&) = delete;
  CountedThread& operator=(const CountedThread&) = delete;

 private:
  Carrier& carrier_;
  const int number_;
};

// In a process that begins, or in a child after fork, in the system call: nobody waits, and no
// thread is counted.
void ForgetFutexWaiters(Carrier& carrier);

// Whether and for how long the agent may look at a word before it leaves: for threads that begin.
void StartFutexes(Carrier& carrier, const HostKind& host);

// A futex call that the agent has done nothing for yet becomes one that leaves. `interrupted`:
// where the thread goes on.
template <typename Interrupted>
void LeaveFutexCall(Carrier& carrier, Interrupted& interrupted) {
  interrupted.rip = agent::GuestAddressOf(trapline_agent_futex_leave);
  interrupted.rsp = agent::kFutexStack;
  carrier.vcpu().MarkRegistersDirty();
}

// The rest of the agent's way back from a futex call, all of which can be done again.
void FinishFutexAnswer(Carrier& carrier);

}  // namespace trapline
