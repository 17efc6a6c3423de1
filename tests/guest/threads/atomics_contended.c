#include "guest.h"

static long counter;
static long exchanged;
static unsigned char bytes[4];

static void* Count(void* argument) {
  const int self = (int)(intptr_t)argument;
  for (int i = 0; i < 50000; ++i) {
    __atomic_add_fetch(&counter, 1, __ATOMIC_RELAXED);
    long seen = __atomic_load_n(&exchanged, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&exchanged, &seen, seen + 2, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
    }
    ++((volatile unsigned char*)bytes)[self];
  }
  return NULL;
}

int main(void) {
  pthread_t threads[4];
  for (intptr_t i = 0; i < 4; ++i) threads[i] = Start(Count, (void*)i);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  Fact(counter == 200000, "lock add lost nothing");
  Fact(exchanged == 400000, "compare and exchange lost nothing");
  Fact(bytes[0] == 80 && bytes[1] == 80 && bytes[2] == 80 && bytes[3] == 80,
       "neighbouring bytes did not disturb each other");
  return Done();
}
