// client.h: a lock of the program's own making that is no atomic.
// CLEAN
// TSAN-DIFFERS it does not know client.h
#include "race.h"
#include "trapline/client.h"

int counter;
volatile int turn;

static void Lock(int mine) {
  while (turn != mine) usleep(1000);
  trapline_lock_acquired(&turn);
}

static void Unlock(int next) {
  trapline_lock_releasing(&turn);
  turn = next;
}

static void* First(void* argument) {
  Lock(0);
  counter++;
  Unlock(1);
  return argument;
}

static void* Second(void* argument) {
  Lock(1);
  counter++;
  Unlock(0);
  return argument;
}

int main(void) {
  trapline_untrack(&turn, sizeof(turn));
  RunTwo(First, Second);
  return Done();
}
