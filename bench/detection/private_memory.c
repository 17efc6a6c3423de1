// Threads that work on memory of their own, and share one small array: what detection costs them.
// Prints the seconds the work took and the most memory the process used, in KiB.
//
// private_memory THREADS MEBIBYTES ROUNDS SHARED_KIBIBYTES
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

static long threads, words, rounds, shared_words;
static uint64_t* shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void* Work(void* argument) {
  uint64_t* const own = mmap(NULL, (size_t)words * sizeof *own, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (own == MAP_FAILED) exit(2);
  uint64_t sum = (uint64_t)(uintptr_t)argument;
  for (long round = 0; round < rounds; ++round) {
    for (long i = 0; i < words; ++i) {
      own[i] = own[i] * 6364136223846793005u + sum + (uint64_t)i;
      sum ^= own[i] >> 7;
    }
  }
  // One word in each page of the shared array, so that all of it is really shared.
  pthread_mutex_lock(&mutex);
  for (long i = 0; i < shared_words; i += 512) shared[i] += sum;
  pthread_mutex_unlock(&mutex);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  threads = atol(argv[1]);
  words = atol(argv[2]) * (1 << 17) / threads;
  rounds = atol(argv[3]);
  shared_words = atol(argv[4]) * 128;
  shared = mmap(NULL, (size_t)shared_words * sizeof *shared + 1, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_t started[64];
  const double begin = Now();
  for (long i = 0; i < threads; ++i) pthread_create(&started[i], NULL, Work, (void*)i);
  for (long i = 0; i < threads; ++i) pthread_join(started[i], NULL);
  const double seconds = Now() - begin;
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("%.6f %ld\n", seconds, usage.ru_maxrss);
  return 0;
}
