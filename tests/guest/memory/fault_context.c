// What a handler of SIGSEGV sees: si_code, si_addr, error code, vector, RIP.
#include "fault.h"

extern const char load_here[], store_here[];

__attribute__((noinline)) static int LoadAt(const volatile int* p) {
  int value;
  __asm__ volatile(".globl load_here\nload_here: mov (%1), %0" : "=r"(value) : "r"(p));
  return value;
}
__attribute__((noinline)) static void StoreAt(volatile int* p) {
  __asm__ volatile(".globl store_here\nstore_here: movl $1, (%0)" : : "r"(p) : "memory");
}

static void Check(const char* what, const volatile void* address, int code, unsigned long error,
                  const char* rip) {
  Fact(last_fault.signal == SIGSEGV, "%s: SIGSEGV", what);
  Fact(last_fault.code == code, "%s: %s", what,
       code == SEGV_MAPERR ? "SEGV_MAPERR" : "SEGV_ACCERR");
  Fact(last_fault.address == (uintptr_t)address, "%s: si_addr", what);
  Fact(last_fault.vector == 14, "%s: trap number 14", what);
  Fact(last_fault.error == error, "%s: error code %lu", what, error);
  Fact(last_fault.rip == (uintptr_t)rip, "%s: RIP is the instruction", what);
  Fact(last_fault.cr2 == (uintptr_t)address, "%s: CR2", what);
}

int main(void) {
  CatchFaults();
  int* p = Map(3 * kPage, PROT_READ);
  Fact(p[0] == 0, "touched");
  int* none = p + 1024;
  mprotect(none, kPage, PROT_NONE);
  int* gone = p + 2048;
  munmap(gone, kPage);
  Fact(FAULTS(LoadAt(gone + 7)), "load from nowhere");
  Check("load from nowhere", gone + 7, SEGV_MAPERR, 4, load_here);
  Fact(FAULTS(StoreAt(gone + 7)), "store to nowhere");
  Check("store to nowhere", gone + 7, SEGV_MAPERR, 6, store_here);
  Fact(FAULTS(StoreAt(p + 5)), "store to a read-only page");
  Check("store to a read-only page", p + 5, SEGV_ACCERR, 7, store_here);
  int* fresh = Map(kPage, PROT_READ);
  Fact(FAULTS(StoreAt(fresh)), "store to a read-only page that was never read");
  Check("store to a read-only page that was never read", fresh, SEGV_ACCERR, 6, store_here);
  Fact(FAULTS(LoadAt(NULL)), "load from NULL");
  Check("load from NULL", NULL, SEGV_MAPERR, 4, load_here);
  return Done();
}
