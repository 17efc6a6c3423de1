// Pages that go from one thread to another one order nothing in a program that synchronises by
// calls only: what the first one had done before it lost them races all the same.
// RACE read-write global:apart+1048576 write read
// BUILD O2 fixed
// SECONDS 60
// MAY-MISS shared: its owner wrote it before the page was shared
// MAY-MISS write-shared: its owner wrote it before the page was shared
#include "race.h"

enum { kPages = 256, kLines = 64, kLine = 8, kTurns = 400 };

static long table[kPages][kLines][kLine];
// Pages change hands with their neighbours.
static struct {
  char before[1 << 20];
  int result;
  char after[1 << 20];
} apart;

// Long enough to be native: lines of each page that nobody else uses.
__attribute__((noinline)) static void Work(int first) {
  for (int turn = 0; turn < kTurns; turn++) {
    for (int page = 0; page < kPages; page++) {
      for (int line = first; line < kLines; line += 2) table[page][line][0] += turn;
    }
  }
}

static void* First(void* argument) {
  apart.result = 1;  // [write]
  Work(0);
  usleep(600000);  // what an ended thread had is nobody's
  return argument;
}

static void* Second(void* argument) {
  usleep(300000);
  Work(1);
  Use(apart.result);  // [read]
  return argument;
}

int main(void) {
  pthread_t first, second;
  pthread_create(&first, NULL, First, NULL);
  pthread_create(&second, NULL, Second, NULL);
  pthread_join(second, NULL);
  pthread_join(first, NULL);
  return 0;
}
