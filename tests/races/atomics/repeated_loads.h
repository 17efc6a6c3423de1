// Two ways of loading a word, in epochs of their own.
#ifndef TRAPLINE_TESTS_RACES_ATOMICS_REPEATED_LOADS_H_
#define TRAPLINE_TESTS_RACES_ATOMICS_REPEATED_LOADS_H_

#include "race.h"

static inline void* LoadByMove(void** word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

// As FreeBSD's atomic_load_acq does it.
static inline void* LoadByCompareExchange(void** word) {
  void* value = NULL;
  __asm__ volatile("lock cmpxchg %0, %1" : "+a"(value), "+m"(*word) : : "memory", "cc");
  return value;
}

static inline void Exchange(void** word, void* value) {
  Use((long)__atomic_exchange_n(word, value, __ATOMIC_SEQ_CST));
}

// Loads the word by turns both ways, each time in an epoch of its own.
static void* LoadAgain(void** word) {
  static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
  static int turn;
  pthread_mutex_lock(&own);
  void* const value = ++turn % 2 != 0 ? LoadByMove(word) : LoadByCompareExchange(word);
  pthread_mutex_unlock(&own);
  return value;
}

#endif
