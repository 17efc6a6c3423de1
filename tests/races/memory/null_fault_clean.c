// Null pointers found by SIGSEGV, as some runtimes do: threads fault at one address, where nobody
// has accessed anything.
// CLEAN
#include <setjmp.h>
#include <signal.h>

#include "race.h"

enum { kThreads = 4, kTimes = 20 };

struct Object {
  long unused[1000], member;
};

static struct Object* volatile nothing;
static __thread sigjmp_buf back;
static pthread_barrier_t start;

static void OnFault(int signal) {
  (void)signal;
  siglongjmp(back, 1);
}

static void* Fault(void* argument) {
  pthread_barrier_wait(&start);
  for (volatile int i = 0; i < kTimes; i++) {
    if (sigsetjmp(back, 1) == 0) nothing->member = 1;
  }
  return argument;
}

int main(void) {
  struct sigaction action = {.sa_handler = OnFault};
  Check(sigaction(SIGSEGV, &action, NULL) == 0);
  Check(pthread_barrier_init(&start, NULL, kThreads) == 0);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; i++) threads[i] = Start(Fault, NULL);
  for (int i = 0; i < kThreads; i++) Join(threads[i]);
  return Done();
}
