// The handler maps what is missing and returns: the instruction is retried. As garbage collectors
// and emulators do.
#include "guest.h"

static char* area;
static int faults;
static void Provide(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)context;
  ++faults;
  char* page = (char*)((uintptr_t)info->si_addr & ~(uintptr_t)(kPage - 1));
  if (page < area || page >= area + 256 * kPage) _exit(55);
  mprotect(page, kPage, PROT_READ | PROT_WRITE);
}

int main(void) {
  Handle(SIGSEGV, Provide, 0);
  area = Map(256 * kPage, PROT_NONE);
  for (int i = 0; i < 256; ++i) area[i * kPage + i] = (char)i;
  bool good = true;
  for (int i = 0; i < 256; ++i) good = good && area[i * kPage + i] == (char)i;
  Fact(faults == 256, "256 faults");
  Fact(good, "256 pages provided on demand");
  // A string instruction that crosses into missing pages goes on where it was.
  mprotect(area, 256 * kPage, PROT_NONE);
  faults = 0;
  char* to = area + 100;
  size_t count = 10 * kPage;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"('s') : "memory");
  Fact(faults == 11 && count == 0, "rep stosb over 11 missing pages");
  good = true;
  for (int i = 0; i < 10 * kPage; ++i) good = good && area[100 + i] == 's';
  Fact(good, "stored all");
  return Done();
}
