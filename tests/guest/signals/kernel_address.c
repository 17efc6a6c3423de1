// Addresses of the kernel's half: page faults with SEGV_MAPERR, whatever may be mapped there.
#include "fault.h"

int main(void) {
  CatchFaults();
  const uintptr_t addresses[] = {0xffff800000000000, 0xffff888000000000, 0xffffffff81000000,
                                 0xffffffffff5ff000, 0xfffffffffffff000};
  for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); ++i) {
    volatile int* p = (volatile int*)addresses[i];
    const bool load = FAULTS((void)*p);
    Fact(load && last_fault.signal == SIGSEGV && last_fault.code == SEGV_MAPERR &&
             last_fault.address == addresses[i],
         "load from %lx", addresses[i]);
    const bool store = FAULTS(*p = 1);
    Fact(store && last_fault.signal == SIGSEGV && last_fault.code == SEGV_MAPERR, "store to %lx",
         addresses[i]);
  }
  // The mirror of the program's own memory, were there one.
  volatile int own = 5;
  volatile int* mirror = (volatile int*)((uintptr_t)&own + 0xffff800000000000);
  Fact(FAULTS(*mirror = 6) && own == 5, "no way to the program's own memory up there");
  return Done();
}
