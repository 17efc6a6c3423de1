// A word that seldom changes, by which a writer publishes objects, is loaded again and again, each
// time in an epoch of its own, when repeats are no longer told.
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

enum { kRounds = 30, kLoads = 20 };

struct Object {
  long round, value;
};

// The program's: what the writer does before and after it publishes an object, and what the reader
// does with one that is new to it.
static void BeforePublishing(struct Object* object);
static void AfterPublishing(struct Object* object);
static void UseObject(const struct Object* object);

static _Alignas(64) void* published;
static _Alignas(64) int loads;

static void* Reader(void* argument) {
  const struct Object* seen = NULL;
  do {
    const struct Object* object = LoadAgain(&published);
    __atomic_add_fetch(&loads, 1, __ATOMIC_RELAXED);
    if (object == seen) continue;
    seen = object;
    UseObject(seen);
  } while (seen == NULL || seen->round != kRounds);
  return argument;
}

static void* Writer(void* argument) {
  for (int round = 1; round <= kRounds; ++round) {
    struct Object* object = malloc(sizeof *object);
    object->round = round;
    BeforePublishing(object);
    Exchange(&published, object);
    AfterPublishing(object);
    if (round == kRounds) break;
    while (__atomic_load_n(&loads, __ATOMIC_RELAXED) < round * kLoads) usleep(100);
  }
  return argument;
}

#endif
