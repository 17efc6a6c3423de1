// Works at random in a table of its own while it makes short threads, one after the other, and
// waits for each. Arguments: threads, MiB of the table, places of the table used meanwhile. Prints
// the seconds that took and the peak memory in KiB.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static void* Sum(void* argument) {
  unsigned long sum = 0;
  for (unsigned long i = 0; i < 1000; i++) sum += i * (unsigned long)argument;
  return (void*)sum;
}

static double Seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char** argv) {
  if (argc != 4) return 1;
  const long threads = atol(argv[1]), places = atol(argv[3]);
  const size_t words = (size_t)atol(argv[2]) * ((1 << 20) / sizeof(unsigned));
  unsigned* const table = malloc(words * sizeof *table);
  if (table == NULL) return 1;
  for (size_t i = 0; i < words; i++) table[i] = (unsigned)i;
  const double start = Seconds();
  unsigned place = 1;
  for (long i = 0; i < threads; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, Sum, (void*)i) != 0) return 1;
    for (long j = 0; j < places; j++) {
      place = place * 1664525 + 1013904223;
      table[place % words]++;
    }
    pthread_join(thread, NULL);
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("%.4f %ld\n", Seconds() - start, usage.ru_maxrss);
  return 0;
}
