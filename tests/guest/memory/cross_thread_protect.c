// One thread takes a page from another that is using it: the fault arrives in the thread that uses
// it.
#include "guest.h"

static char* page;
static int faults;
static int faulting_thread_right;
static int running;
static int stop;
static __thread int is_toucher;

static void OnFault(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)context;
  if (is_toucher && info->si_code == SEGV_ACCERR && info->si_addr == page)
    Add(&faulting_thread_right, 1);
  Add(&faults, 1);
  mprotect(page, kPage, PROT_READ | PROT_WRITE);
}

static void* Touch(void* argument) {
  is_toucher = 1;
  Store(&running, 1);
  while (!Load(&stop)) ++*(volatile char*)page;
  return argument;
}

int main(void) {
  Handle(SIGSEGV, OnFault, 0);
  page = Map(kPage, PROT_READ | PROT_WRITE);
  pthread_t thread = Start(Touch, NULL);
  WaitUntil(&running, 1);
  for (int i = 0; i < 50; ++i) {
    mprotect(page, kPage, i % 2 ? PROT_READ : PROT_NONE);
    if (!WaitUntil(&faults, i + 1)) break;
  }
  Store(&stop, 1);
  pthread_join(thread, NULL);
  Fact(faults == 50, "50 faults");
  Fact(faulting_thread_right == 50, "all in the thread that touched the page");
  return Done();
}
