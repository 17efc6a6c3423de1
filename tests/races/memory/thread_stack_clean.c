// While another thread fills a block on its stack, the owner goes on calling and returning.
// CLEAN
#include "race.h"

static void* Filler(void* argument) {
  int* block = (int*)argument;
  for (int i = 0; i < 8; i++) block[i] = i;
  return NULL;
}

__attribute__((noinline)) static long Deep(int depth) {
  volatile long local = depth;
  return depth == 0 ? local : local + Deep(depth - 1);
}

static void* Owner(void* argument) {
  int block[8];
  const pthread_t filler = Start(Filler, block);
  const long sum = Deep(20);
  Join(filler);
  *(long*)argument = sum + block[7];
  return NULL;
}

int main(void) {
  long sum = 0;
  Join(Start(Owner, &sum));
  return sum == 217 ? Done() : 1;
}
