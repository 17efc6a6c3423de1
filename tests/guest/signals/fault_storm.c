// Threads fault all the time, each on pages of its own, as a collector's barriers or an emulator
// do.
#include "guest.h"

enum { kPages = 32, kRounds = 40, kThreads = 4 };
static __thread char* area;
static __thread int faults;
static int total;
static int wrong;

static void Open(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)context;
  char* page = (char*)((uintptr_t)info->si_addr & ~(uintptr_t)(kPage - 1));
  if (page < area || page >= area + kPages * kPage || info->si_code != SEGV_ACCERR) {
    Add(&wrong, 1);
    _exit(66);
  }
  ++faults;
  mprotect(page, kPage, PROT_READ | PROT_WRITE);
}

static void* Work(void* argument) {
  area = Map(kPages * kPage, PROT_READ | PROT_WRITE);
  for (int round = 0; round < kRounds; ++round) {
    mprotect(area, kPages * kPage, round % 2 ? PROT_READ : PROT_NONE);
    for (int i = 0; i < kPages; ++i) {
      area[i * kPage + round] = (char)(i + round);
      if (area[i * kPage + round] != (char)(i + round)) Add(&wrong, 1);
    }
  }
  Add(&total, faults);
  return argument;
}

int main(void) {
  Handle(SIGSEGV, Open, 0);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) threads[i] = Start(Work, NULL);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  Fact(total == kThreads * kRounds * kPages, "5120 faults in 4 threads");
  Fact(wrong == 0, "each at its place, each store done");
  return Done();
}
