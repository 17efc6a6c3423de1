// The legacy page at 0xffffffffff600000: old programs call time there; without it SIGSEGV.
#include "fault.h"

int main(void) {
  CatchFaults();
  long (*legacy_time)(long*) = (long (*)(long*))0xffffffffff600400;
  volatile long now = 0;
  const bool faulted = FAULTS(now = legacy_time(NULL));
  if (faulted) {
    Fact(last_fault.signal == SIGSEGV, "no legacy page: SIGSEGV");
  } else {
    Fact(now >= time(NULL) - 1 && now <= time(NULL), "time by the legacy page");
  }
  return Done();
}
