// The same ring with volatile indices.
// RACE read-write global:head h g
// RACE read-write global:slots s r
// MAY-MISS shared: few accesses
#include "race.h"

enum { kItems = 2 };
int slots[kItems];
volatile int head;

static void* Producer(void* argument) {
  for (int i = 0; i < kItems; i++) {
    slots[i] = i;  // [s]
    head = i + 1;  // [h]
  }
  return argument;
}

static void* Consumer(void* argument) {
  for (int i = 0; i < kItems; i++) {
    while (head == i) {  // [g]
      usleep(1000);
    }
    Use(slots[i]);  // [r]
  }
  return argument;
}

int main(void) {
  RunTwo(Producer, Consumer);
  return Done();
}
