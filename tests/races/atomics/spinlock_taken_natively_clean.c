// A lock that a thread takes natively, on pages that have become its own again, and gives back by a
// plain store in the code cache, where a page of others has sent it in between.
// CLEAN
// BUILD gcc-O2
// SECONDS 600
#include "race.h"

enum { kElements = 4096, kOwn = 1 << 16, kRounds = 8 };

struct Element {
  int lock;
  long value;
};

static _Alignas(4096) struct Element elements[kElements];
static _Alignas(4096) long own[kOwn];
static _Alignas(4096) volatile long counters[2][2];  // of the threads, on one page
static _Alignas(4096) int done;

static void Visit(struct Element* element, volatile long* counter) {
  while (__atomic_exchange_n(&element->lock, 1, __ATOMIC_ACQUIRE) != 0) continue;
  *counter = *counter + 1;
  element->value++;
  __asm__ volatile("movl $0, %0" : "=m"(element->lock) : : "memory");  // no source tells
}

static void VisitAll(int rounds, volatile long* counter) {
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < kElements; i++) Visit(&elements[i], counter);
  }
}

// Uses all locks, then its counter while the other one takes them natively, and all locks again.
static void* First(void* argument) {
  VisitAll(1, &counters[0][0]);
  for (unsigned i = 0; __atomic_load_n(&done, __ATOMIC_RELAXED) == 0; i++) {
    counters[0][0] = counters[0][0] + 1;
    if (i % 64 == 0) usleep(20);
  }
  VisitAll(kRounds, &counters[0][0]);
  return argument;
}

// Comes later, and is hot by then.
static void* Second(void* argument) {
  usleep(500000);
  for (int round = 0; round < 16; round++) {
    for (int i = 0; i < kOwn; i++) own[i]++;
    Escape(own);
  }
  VisitAll(2, &counters[1][0]);
  __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
  VisitAll(kRounds, &counters[1][0]);
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  for (int i = 0; i < kElements; i++) Check(elements[i].value == 3 + 2 * kRounds);
  return Done();
}
