// Catches synchronous faults: `if (FAULTS(*pointer = 1)) ... last_fault.code ...`.
#ifndef TRAPLINE_TESTS_GUEST_FAULT_H_
#define TRAPLINE_TESTS_GUEST_FAULT_H_

#include "guest.h"

struct Fault {
  int signal;
  int code;
  uintptr_t address;  // si_addr
  uintptr_t rip;
  uintptr_t rsp;
  unsigned long error;   // the #PF error code: 1 protection, 2 write, 4 user, 16 fetch
  unsigned long vector;  // 14 page fault, 13 general protection, ...
  unsigned long cr2;
};

static struct Fault last_fault;
static sigjmp_buf fault_return;

__attribute__((unused)) static void OnFault(int signal, siginfo_t* info, void* context) {
  const ucontext_t* user = (const ucontext_t*)context;
  last_fault.signal = signal;
  last_fault.code = info->si_code;
  last_fault.address = (uintptr_t)info->si_addr;
  last_fault.rip = (uintptr_t)user->uc_mcontext.gregs[REG_RIP];
  last_fault.rsp = (uintptr_t)user->uc_mcontext.gregs[REG_RSP];
  last_fault.error = (unsigned long)user->uc_mcontext.gregs[REG_ERR];
  last_fault.vector = (unsigned long)user->uc_mcontext.gregs[REG_TRAPNO];
  last_fault.cr2 = (unsigned long)user->uc_mcontext.gregs[REG_CR2];
  siglongjmp(fault_return, 1);
}

__attribute__((unused)) static void CatchFaults(void) {
  const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
  for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); ++i) Handle(signals[i], OnFault, 0);
}

// Runs the statement; true if it raised a signal that CatchFaults catches.
#define FAULTS(statement)                       \
  __extension__({                               \
    volatile bool faulted_ = true;              \
    memset(&last_fault, 0, sizeof(last_fault)); \
    if (sigsetjmp(fault_return, 1) == 0) {      \
      statement;                                \
      faulted_ = false;                         \
    }                                           \
    faulted_;                                   \
  })

// Was the last fault a SIGSEGV with this code at this address?
__attribute__((unused)) static bool SegvWas(int code, const volatile void* address) {
  return last_fault.signal == SIGSEGV && last_fault.code == code &&
         last_fault.address == (uintptr_t)address;
}

#endif  // TRAPLINE_TESTS_GUEST_FAULT_H_
