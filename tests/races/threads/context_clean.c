// A coroutine that one thread begins and another one goes on with, under a mutex.
// CLEAN
#include <ucontext.h>

#include "race.h"

int value;
static char stack[1 << 16];
static ucontext_t coroutine, back;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void Body(void) {
  volatile int local = 0;
  for (int i = 0; i < 4; i++) {
    local = local + 1;
    value = local;
    swapcontext(&coroutine, &back);
  }
}

static void* Resumes(void* argument) {
  for (int i = 0; i < 2; i++) {
    pthread_mutex_lock(&mutex);
    swapcontext(&back, &coroutine);
    pthread_mutex_unlock(&mutex);
    usleep(1000);
  }
  return argument;
}

int main(void) {
  getcontext(&coroutine);
  coroutine.uc_stack.ss_sp = stack;
  coroutine.uc_stack.ss_size = sizeof stack;
  coroutine.uc_link = &back;
  makecontext(&coroutine, Body, 0);
  RunTwo(Resumes, Resumes);
  return value == 4 ? Done() : 1;
}
