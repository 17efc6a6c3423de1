// What system calls do to the program's memory and to the order of its threads, for whoever looks
// for races: the kernel's reads and writes count as the calling thread's accesses, and what is read
// from a pipe, a socket, a queue or an event counter comes after what was written to it.
#pragma once

#include <csignal>

#include "hypervisor/guest_thread.h"
#include "hypervisor/system_calls.h"

namespace trapline {

// Nothing happens unless accesses are tracked. To be called by the thread that makes the call,
// right before and right after the kernel does it; `result` as Linux returns it.
void ReportBeforeSystemCall(GuestThread& thread, const SystemCall& call);
void ReportAfterSystemCall(GuestThread& thread, const SystemCall& call, long result);

// The key under which a signal's sender and its handler are ordered.
std::uint64_t SignalKey(int signal);
// Likewise for what makes the kernel send a signal of whatever number, and who handles it: POSIX
// timers, and data where the program has asked for signals (mq_notify, O_ASYNC).
inline constexpr std::uint64_t kKernelSignalKey = 7ull << 56;
bool IsOfKernel(const siginfo_t& info);

}  // namespace trapline
