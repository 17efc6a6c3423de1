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

// The threads that need a processor are counted. Who wants to look at a word for a while only does
// so if there is one for all of them. Lives while a thread of the program's runs, ...
class CountedThread {
 public:
  CountedThread(Carrier& carrier, bool starts_process);
  ~CountedThread();
  CountedThread(const CountedThread&) = delete;
  CountedThread& operator=(const CountedThread&) = delete;

 private:
  Carrier& carrier_;
};

// ... and around its system calls, in which it needs none.
class ThreadAway {
 public:
  explicit ThreadAway(Carrier& carrier);
  ~ThreadAway();
  ThreadAway(const ThreadAway&) = delete;
  ThreadAway& operator=(const ThreadAway&) = delete;

 private:
  Carrier& carrier_;
};

// In a child after fork, in the system call: none of those who wait is in it, nor another thread.
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
