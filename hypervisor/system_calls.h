// The program's system calls. Most are passed on with the program's own pointers (guest virtual =
// host virtual); those about memory, threads, signals, processes and the identity of the process
// are answered here.
#pragma once

#include <cstdint>

namespace trapline {

class GuestThread;

struct SystemCall {
  long number;
  std::uint64_t arguments[6];
};

struct SystemCallResult {
  long value = 0;  // as the kernel returns it: a value, -errno, or kRestart
  bool context_replaced = false;
};

// Runs on the guest thread that made the call.
SystemCallResult DispatchSystemCall(GuestThread& thread, const SystemCall& call);

}  // namespace trapline
