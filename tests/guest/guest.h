// What every guest program uses: facts, each printed as one line, and a few helpers.
//
// A guest program checks how Linux behaves and behaves the same wherever it runs: natively and
// under the monitor its output and its exit status are equal. So lines hold no addresses, ids or
// times, and every fact holds natively.
#ifndef TRAPLINE_TESTS_GUEST_GUEST_H_
#define TRAPLINE_TESTS_GUEST_GUEST_H_

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { kPage = 4096, kSkipped = 77 };

static int guest_failures;

// Prints one fact. Goes round stdio, so that it can be used in handlers, children and threads
// alike.
__attribute__((format(printf, 2, 3), unused)) static void Fact(bool holds, const char* format,
                                                               ...) {
  char text[256];
  const int start = snprintf(text, sizeof(text), "%s ", holds ? "ok" : "NOT");
  va_list arguments;
  va_start(arguments, format);
  int end = start + vsnprintf(text + start, sizeof(text) - (size_t)start - 1, format, arguments);
  va_end(arguments);
  if (end > (int)sizeof(text) - 2) end = (int)sizeof(text) - 2;
  text[end] = '\n';
  if (write(STDOUT_FILENO, text, (size_t)end + 1) < 0) _exit(99);
  if (!holds) __atomic_add_fetch(&guest_failures, 1, __ATOMIC_SEQ_CST);
}

// The exit status: 0 if every fact held.
__attribute__((unused)) static int Done(void) {
  return __atomic_load_n(&guest_failures, __ATOMIC_SEQ_CST) == 0 ? 0 : 1;
}

// This machine cannot show the behaviour, natively neither.
__attribute__((noreturn, unused)) static void Skip(const char* reason) {
  dprintf(STDOUT_FILENO, "skipped: %s\n", reason);
  _exit(kSkipped);
}

__attribute__((unused)) static int64_t NowNs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

// Sleeps on through signals.
__attribute__((unused)) static void SleepMs(int ms) {
  struct timespec time = {ms / 1000, (ms % 1000) * 1000000L};
  while (nanosleep(&time, &time) != 0 && errno == EINTR) {
  }
}

// Waits until *value == wanted, at most 10 s (an emulated machine is slow); false on time-out.
__attribute__((unused)) static bool WaitUntil(const int* value, int wanted) {
  const int64_t end = NowNs() + 10000000000LL;
  while (__atomic_load_n(value, __ATOMIC_SEQ_CST) != wanted) {
    if (NowNs() > end) return false;
    SleepMs(1);
  }
  return true;
}

__attribute__((unused)) static int Load(const int* value) {
  return __atomic_load_n(value, __ATOMIC_SEQ_CST);
}
__attribute__((unused)) static void Store(int* value, int to) {
  __atomic_store_n(value, to, __ATOMIC_SEQ_CST);
}
__attribute__((unused)) static int Add(int* value, int amount) {
  return __atomic_add_fetch(value, amount, __ATOMIC_SEQ_CST);
}

typedef void (*GuestHandler)(int, siginfo_t*, void*);

__attribute__((unused)) static void Handle(int signal, GuestHandler handler, int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigemptyset(&action.sa_mask);
  if (sigaction(signal, &action, NULL) != 0) _exit(98);
}

__attribute__((unused)) static sigset_t SetOf(int signal) {
  sigset_t set;
  sigemptyset(&set);
  if (signal != 0) sigaddset(&set, signal);
  return set;
}

__attribute__((unused)) static pthread_t Start(void* (*function)(void*), void* argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, function, argument) != 0) {
    Fact(false, "thread created");
    _exit(97);
  }
  return thread;
}

// Waits for a child; its wait status.
__attribute__((unused)) static int Reap(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) != child) {
    if (errno != EINTR) return -1;
  }
  return status;
}

// Children that die by a signal leave no core file.
__attribute__((unused)) static void NoCore(void) {
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

__attribute__((unused)) static void* Map(size_t size, int protection) {
  void* address = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    Fact(false, "memory mapped");
    _exit(96);
  }
  return address;
}

__attribute__((unused)) static int OpenTemporary(void) {
  char path[] = "/tmp/guest-XXXXXX";
  const int fd = mkostemp(path, O_CLOEXEC);
  if (fd < 0) _exit(95);
  unlink(path);
  return fd;
}

#endif  // TRAPLINE_TESTS_GUEST_GUEST_H_
