// Threads that only make progress if others run: no thread may starve another.
#include "guest.h"

static int turn;

static void* Player(void* argument) {
  const int self = (int)(intptr_t)argument;
  for (int round = 0; round < 200; ++round) {
    while (Load(&turn) % 4 != self) sched_yield();
    Add(&turn, 1);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[4];
  for (intptr_t i = 0; i < 4; ++i) threads[i] = Start(Player, (void*)i);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  Fact(turn == 800, "4 threads took 200 turns each");
  return Done();
}
