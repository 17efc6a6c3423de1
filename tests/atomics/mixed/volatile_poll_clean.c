// Code from before C11: a ticket lock whose volatile turn is polled by plain loads.
// CLEAN
#include "race.h"

static int value;
static int next_ticket;
static volatile int turn;

static void* Works(void* argument) {
  for (int i = 0; i < 3; i++) {
    const int ticket = __sync_fetch_and_add(&next_ticket, 1);
    while (turn != ticket) usleep(100);
    value++;
    __sync_fetch_and_add(&turn, 1);
  }
  return argument;
}

int main(void) {
  RunTwo(Works, Works);
  return value == 6 ? Done() : 1;
}
