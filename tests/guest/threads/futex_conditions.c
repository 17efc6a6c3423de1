// Many threads at one condition variable: signals, broadcasts, timeouts, and mutexes that all want.
#include "guest.h"

enum { kWorkers = 6, kItems = 2000, kGatherings = 150 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static pthread_cond_t all_here = PTHREAD_COND_INITIALIZER;
static int items, taken, here, gathering;

static void* Take(void* argument) {
  (void)argument;
  for (;;) {
    pthread_mutex_lock(&mutex);
    while (items == 0 && taken < kItems) pthread_cond_wait(&not_empty, &mutex);
    if (items == 0) break;
    --items;
    if (++taken == kItems) pthread_cond_broadcast(&not_empty);
    pthread_cond_signal(&not_full);
    pthread_mutex_unlock(&mutex);
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void* Gather(void* argument) {
  const bool impatient = argument != NULL;
  for (int i = 0; i < kGatherings; ++i) {
    pthread_mutex_lock(&mutex);
    const int now = gathering;
    if (++here == kWorkers) {
      here = 0;
      ++gathering;
      pthread_cond_broadcast(&all_here);
    }
    while (gathering == now) {
      if (impatient) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000;
        if (until.tv_nsec >= 1000000000) {
          until.tv_nsec -= 1000000000;
          ++until.tv_sec;
        }
        pthread_cond_timedwait(&all_here, &mutex, &until);
      } else {
        pthread_cond_wait(&all_here, &mutex);
      }
    }
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[kWorkers];
  for (int i = 0; i < kWorkers; ++i) threads[i] = Start(Take, NULL);
  for (int i = 0; i < kItems; ++i) {
    pthread_mutex_lock(&mutex);
    while (items == 4) pthread_cond_wait(&not_full, &mutex);
    ++items;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&mutex);
  }
  for (int i = 0; i < kWorkers; ++i) pthread_join(threads[i], NULL);
  Fact(taken == kItems && items == 0, "%d items handed over", taken);
  for (int i = 0; i < kWorkers; ++i) threads[i] = Start(Gather, i < 2 ? &here : NULL);
  for (int i = 0; i < kWorkers; ++i) pthread_join(threads[i], NULL);
  Fact(gathering == kGatherings, "%d gatherings", gathering);
  return Done();
}
