// Threads hand a turn on by raw futexes, each by a wake that may find nobody waiting: none of them
// may be lost. Once with one word each, once with one word that all wait at.
#include <linux/futex.h>

#include "guest.h"

enum { kMostThreads = 8, kWords = 64 / sizeof(int) };

static int words[kMostThreads][kWords] __attribute__((aligned(64)));
static int common;
static int threads_now, rounds;
static long handed_over;

static void Wait(int* word, int value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void* OwnWord(void* argument) {
  const int number = (int)(intptr_t)argument;
  int* const own = words[number];
  int* const next = words[(number + 1) % threads_now];
  for (int i = 0; i < rounds; ++i) {
    while (__atomic_load_n(own, __ATOMIC_ACQUIRE) == 0) Wait(own, 0);
    __atomic_store_n(own, 0, __ATOMIC_RELAXED);
    ++handed_over;
    __atomic_store_n(next, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, next, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  }
  return NULL;
}

static void* CommonWord(void* argument) {
  const int number = (int)(intptr_t)argument;
  for (int i = 0; i < rounds; ++i) {
    for (int now; (now = __atomic_load_n(&common, __ATOMIC_ACQUIRE)) % threads_now != number;)
      Wait(&common, now);
    ++handed_over;
    __atomic_add_fetch(&common, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &common, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, ~0);
  }
  return NULL;
}

static void Run(void* (*body)(void*), int count, int turns) {
  threads_now = count;
  rounds = turns / count;
  handed_over = 0;
  common = 0;
  memset(words, 0, sizeof(words));
  words[0][0] = 1;
  pthread_t threads[kMostThreads];
  for (int i = 0; i < count; ++i) threads[i] = Start(body, (void*)(intptr_t)i);
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  Fact(handed_over == (long)rounds * count, "%d threads, %s: %ld turns", count,
       body == OwnWord ? "a word each" : "one word", handed_over);
}

// Arguments: how many threads, and how many turns.
int main(int argc, char** argv) {
  const int turns = argc > 2 ? atoi(argv[2]) : 4000;
  for (int count = 2; count <= kMostThreads; count *= 2) {
    if (argc > 1 && atoi(argv[1]) != count) continue;
    Run(OwnWord, count, turns);
    Run(CommonWord, count, turns / 4);
  }
  return Done();
}
