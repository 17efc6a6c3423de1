// Two threads write a counter and random elements of an array, as often as the first argument says
// (0: for ever), and race at both. Prints a line at its start and one at its end. With a second
// argument it is aborted then.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kElements = 1 << 12 };
static volatile long counter;
static volatile int table[kElements];
static long rounds;

static void* Work(void* argument) {
  unsigned random = *(unsigned*)argument;
  for (long i = 0; rounds == 0 || i < rounds; ++i) {
    counter = i;  // [counter]
    random = random * 1664525u + 1013904223u;
    table[(random >> 16) % kElements] = (int)i;  // [table]
  }
  return NULL;
}

int main(int argc, char** argv) {
  rounds = argc > 1 ? atol(argv[1]) : 0;
  printf("begin\n");
  fflush(stdout);
  unsigned seeds[2] = {1, 2};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, Work, &seeds[i]);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  printf("end\n");
  if (argc > 2) abort();
  return 7;
}
