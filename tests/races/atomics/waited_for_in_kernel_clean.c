// Without debug info: an event made of a futex. Loops that wait for it do nothing but ask the
// kernel, by the C library's syscall or by an instruction of their own.
// CLEAN
// BUILD gcc-O2 gcc-O2-nodebug clang-O2-nodebug stripped
#include <linux/futex.h>

#include "race.h"

static int called, answered;
static int question, answer;

static void Wait(int* word) {
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0)
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static long Futex(int* word, long operation, long value) {
  register long timeout __asm__("r10") = 0;
  long result = SYS_futex;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(word), "S"(operation), "d"(value), "r"(timeout)
                   : "rcx", "r11", "memory");
  return result;
}

static void* Answers(void* argument) {
  Wait(&called);
  answer = question + 1;
  __atomic_store_n(&answered, 1, __ATOMIC_RELEASE);
  Futex(&answered, FUTEX_WAKE_PRIVATE, 1);
  return argument;
}

static void* Asks(void* argument) {
  usleep(2000);
  question = 1;
  __atomic_store_n(&called, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &called, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  while (__atomic_load_n(&answered, __ATOMIC_ACQUIRE) == 0) Futex(&answered, FUTEX_WAIT_PRIVATE, 0);
  Use(answer);
  return argument;
}

int main(void) {
  RunTwo(Answers, Asks);
  return Done();
}
