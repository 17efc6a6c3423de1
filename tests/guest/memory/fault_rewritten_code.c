// A fault is what the instruction there now does, not what was there when it faulted before.
#include "fault.h"

// Puts `mov (%rdi),%eax` or `mov %eax,(%rdi)`, and a return, on a page that can then only be
// executed: by writing to it in place, or by a new mapping.
static void* Put(void* at, bool store, bool anew) {
  const unsigned char code[] = {store ? 0x89 : 0x8b, 0x07, 0xc3};
  if (anew) {
    at = mmap(at, kPage, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | (at != NULL ? MAP_FIXED : 0), -1, 0);
  } else {
    mprotect(at, kPage, PROT_READ | PROT_WRITE);
  }
  memcpy(at, code, sizeof(code));
  mprotect(at, kPage, PROT_READ | PROT_EXEC);
  return at;
}

static unsigned long ErrorOf(void* code, volatile char* data) {
  void (*function)(volatile char*);
  memcpy(&function, &code, sizeof(function));
  return FAULTS(function(data)) ? last_fault.error : 0;
}

int main(void) {
  CatchFaults();
  volatile char* const data = Map(2 * kPage, PROT_NONE);
  void* code = Put(NULL, false, true);
  // Not the same address twice in a row: it would be looked at again for that alone.
  Fact((ErrorOf(code, data) & 2) == 0 && last_fault.signal == SIGSEGV, "a load");
  Fact((ErrorOf(code, data + kPage) & 2) == 0 && last_fault.signal == SIGSEGV, "and once more");
  code = Put(code, true, false);
  Fact((ErrorOf(code, data) & 2) != 0, "written in place: a store");
  Fact((ErrorOf(code, data + kPage) & 2) != 0, "and once more");
  code = Put(code, false, true);
  Fact((ErrorOf(code, data) & 2) == 0 && last_fault.signal == SIGSEGV, "mapped anew: a load");
  code = Put(code, true, true);
  Fact((ErrorOf(code, data + kPage) & 2) != 0, "and a store");
  return Done();
}
