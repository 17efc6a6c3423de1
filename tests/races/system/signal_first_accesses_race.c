// What a handler does first, and what the code does first to which it returns, on pages that only
// its own thread has used so far. They lie near to the code, so that fetching it maps them.
// RACE write-write global:by_handler a b
// RACE write-write global:afterwards c d
// MAY-MISS shared: each place runs once
#include <signal.h>

#include "run_to_end.h"

_Alignas(4096) volatile int by_handler[1024], afterwards[1024];

static void Handler(int signal) {
  by_handler[1] = signal;  // [a]
}

static void* Trapped(void* argument) {
  by_handler[0] = 1;
  afterwards[0] = 1;
  __asm__ volatile("int3" : : : "memory");
  afterwards[1] = 1;  // [c]
  return argument;
}

int main(void) {
  const pthread_t idle = StartIdle();
  Check(signal(SIGTRAP, Handler) != SIG_ERR);
  const pthread_t trapped = RunToEnd(Trapped, NULL);
  by_handler[1] = 2;  // [b]
  afterwards[1] = 2;  // [d]
  Join(trapped);
  EndIdle(idle);
  return Done();
}
