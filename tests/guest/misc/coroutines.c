#include "guest.h"

enum { kRoutines = 50 };
static ucontext_t main_context;
static ucontext_t contexts[kRoutines];
static int steps[kRoutines];
static int current;

static void Run(int self) {
  double x = self;
  for (int i = 0; i < 20; ++i) {
    x = x * 0.5 + 1;
    ++steps[self];
    swapcontext(&contexts[self], &main_context);
  }
  if (x < 1.9 || x > 2.1) steps[self] = -1;
}

static void* All(void* argument) {
  (void)argument;
  for (int i = 0; i < kRoutines; ++i) {
    getcontext(&contexts[i]);
    contexts[i].uc_stack.ss_sp = malloc(32768);
    contexts[i].uc_stack.ss_size = 32768;
    contexts[i].uc_link = &main_context;
    makecontext(&contexts[i], (void (*)(void))Run, 1, i);
  }
  for (int round = 0; round < 21; ++round) {
    for (current = 0; current < kRoutines; ++current)
      swapcontext(&main_context, &contexts[current]);
  }
  return NULL;
}

int main(void) {
  pthread_join(Start(All, NULL), NULL);
  int good = 0;
  for (int i = 0; i < kRoutines; ++i) good += steps[i] == 20;
  Fact(good == kRoutines, "50 coroutines of 20 steps");
  return Done();
}
