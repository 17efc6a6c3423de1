// A jump, not a call, leads from the program's code into setcontext: in a statically linked program
// from code that runs in the code cache into code that does not.
// CLEAN
// BUILD O2 static
#include <ucontext.h>

#include "race.h"

static volatile int rounds;
static ucontext_t context;

__attribute__((noinline)) static void Resume(void) { setcontext(&context); }

static void* Thread(void* argument) {
  getcontext(&context);
  if (rounds++ < 2) Resume();
  return argument;
}

int main(void) {
  pthread_t thread;
  Check(pthread_create(&thread, NULL, Thread, NULL) == 0);
  Check(pthread_join(thread, NULL) == 0);
  return rounds == 3 ? Done() : 1;
}
