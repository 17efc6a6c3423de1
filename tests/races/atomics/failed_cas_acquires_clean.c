// A failed compare-and-swap reads all the same, and so acquires.
// CLEAN
#include "race.h"

int value;
int flag;

static void* Sender(void* argument) {
  value = 1;
  __atomic_exchange_n(&flag, 1, __ATOMIC_SEQ_CST);
  return argument;
}

static void* Receiver(void* argument) {
  for (;;) {
    int expected = 2;
    __atomic_compare_exchange_n(&flag, &expected, 3, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    if (expected == 1) break;
    usleep(1000);
  }
  value++;
  return argument;
}

int main(void) {
  RunTwo(Sender, Receiver);
  return value == 2 ? Done() : 1;
}
