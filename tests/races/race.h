// What the programs share: starting threads, and a use for values that were only read.
//
// The programs do little in their threads and never rely on luck: the two accesses of a race are
// unordered in every schedule, and what a clean program does is ordered in every schedule.
#ifndef TRAPLINE_TESTS_RACES_RACE_H_
#define TRAPLINE_TESTS_RACES_RACE_H_

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef void* (*ThreadFunction)(void*);

// A failed call is no race: the program ends with a status no list of results expects.
__attribute__((unused)) static void Check(int holds) {
  if (!holds) _exit(99);
}

__attribute__((unused)) static pthread_t Start(ThreadFunction function, void* argument) {
  pthread_t thread;
  Check(pthread_create(&thread, NULL, function, argument) == 0);
  return thread;
}

__attribute__((unused)) static void Join(pthread_t thread) {
  Check(pthread_join(thread, NULL) == 0);
}

__attribute__((unused)) static void RunTwo(ThreadFunction first, ThreadFunction second) {
  const pthread_t one = Start(first, NULL);
  const pthread_t other = Start(second, NULL);
  Join(one);
  Join(other);
}

// Reads that the compiler may not drop: Use(x).
__attribute__((unused)) static inline void Use(long value) { __asm__ volatile("" : : "r"(value)); }

// Lets the compiler forget what it knows of an object, so that its stores to it stay.
__attribute__((unused)) static inline void Escape(const void* object) {
  __asm__ volatile("" : : "r"(object) : "memory");
}

// A size the compiler does not know, so that a call of memcpy stays one.
__attribute__((unused)) static inline size_t Opaque(size_t value) {
  __asm__ volatile("" : "+r"(value));
  return value;
}

__attribute__((unused)) static inline pid_t ThreadId(void) { return (pid_t)syscall(SYS_gettid); }

// Waits until the thread has ended, by asking the kernel: time passes, but nothing is ordered.
__attribute__((unused)) static void WaitUntilEnded(pid_t thread) {
  while (syscall(SYS_tgkill, getpid(), thread, 0) == 0) usleep(1000);
}

// The same on every run, whatever the race did.
__attribute__((unused)) static int Done(void) {
  puts("done");
  return 0;
}

#endif  // TRAPLINE_TESTS_RACES_RACE_H_
