// Both threads have used the page before a barrier: every policy knows it as shared.
// RACE write-write global:shared a b
// TAGS fast
#include "race.h"

struct {
  int first;
  int second;
  int raced;
} shared;
pthread_barrier_t both;

static void* First(void* argument) {
  shared.first = 1;
  pthread_barrier_wait(&both);
  shared.raced = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  shared.second = 1;
  pthread_barrier_wait(&both);
  shared.raced = 2;  // [b]
  return argument;
}

int main(void) {
  pthread_barrier_init(&both, NULL, 2);
  RunTwo(First, Second);
  return Done();
}
