// What is stored by a plain mov on pages that a thread has to itself orders who reads it there,
// though nobody has seen the store: debug info or the source tells that there may be such.
// CLEAN
// BUILD gcc-O2 clang-O2
// SECONDS 60
#include "race.h"

enum { kPages = 256, kLines = 64, kLine = 8, kTurns = 400 };

static long table[kPages][kLines][kLine];
// Pages change hands with their neighbours.
static struct {
  char before[1 << 20];
  int result;
  char after[1 << 20];
} apart, flag;

// Long enough to be native: lines of each page that nobody else uses.
__attribute__((noinline)) static void Work(int first) {
  for (int turn = 0; turn < kTurns; turn++) {
    for (int page = 0; page < kPages; page++) {
      for (int line = first; line < kLines; line += 2) table[page][line][0] += turn;
    }
  }
}

static void* First(void* argument) {
  apart.result = 1;
  flag.after[0] = 1;  // its own page
  Work(0);
  __atomic_store_n(&flag.result, 1, __ATOMIC_RELEASE);
  usleep(600000);
  return argument;
}

static void* Second(void* argument) {
  usleep(300000);
  while (!__atomic_load_n(&flag.result, __ATOMIC_ACQUIRE)) usleep(1000);
  Work(1);
  Use(apart.result);
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
