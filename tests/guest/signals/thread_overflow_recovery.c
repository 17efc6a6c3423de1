// Threads overflow their stacks again and again and recover on alternate stacks of their own.
#include "guest.h"

static __thread sigjmp_buf back;
static int recovered;

static void OnOverflow(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  siglongjmp(back, 1);
}

static int Recurse(volatile char* above) {
  volatile char frame[2000];
  frame[0] = above[0];
  if (frame[0] != 0) return 0;
  return Recurse(frame) + frame[0];
}

static void* Overflow(void* argument) {
  (void)argument;
  stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536, .ss_flags = 0};
  sigaltstack(&stack, NULL);
  for (int i = 0; i < 10; ++i) {
    volatile char start[1] = {0};
    if (sigsetjmp(back, 1) == 0) {
      Recurse(start);
    } else {
      Add(&recovered, 1);
    }
  }
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, NULL);
  free(stack.ss_sp);
  return NULL;
}

int main(void) {
  Handle(SIGSEGV, OnOverflow, SA_ONSTACK);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * 1024);
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], &attributes, Overflow, NULL);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  Fact(recovered == 40, "4 threads recovered 10 times each");
  return Done();
}
