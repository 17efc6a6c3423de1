// Two threads mostly take locks of their own, which need not be told of any more after the first
// time, and now and then each other's: nested, one in the other, and so many that they share what
// is kept of them.
// OPTIONS --repeats-after=0
// CLEAN
#include "race.h"

enum { kLocks = 3000, kShare = kLocks / 2, kRounds = 6, kDeep = 6 };

static struct {
  pthread_mutex_t mutex;
  long value;
} counters[kLocks];
static pthread_spinlock_t spin;
static long spun;

static void Add(int first, int depth) {
  for (int i = 0; i < depth; i++) {
    pthread_mutex_lock(&counters[first + i].mutex);
    counters[first + i].value++;
  }
  for (int i = depth; i-- > 0;) pthread_mutex_unlock(&counters[first + i].mutex);
}

// Gives back the first lock before the second one.
static void AddHandOverHand(int first, int count) {
  pthread_mutex_lock(&counters[first].mutex);
  for (int i = 0; i < count; i++) {
    counters[first + i].value++;
    if (i + 1 < count) pthread_mutex_lock(&counters[first + i + 1].mutex);
    pthread_mutex_unlock(&counters[first + i].mutex);
  }
}

static int is_second = 1;

static void* Run(void* second) {
  const int own = second != NULL ? kShare : 0;
  const int others = second != NULL ? 0 : kShare;
  for (int round = 0; round < kRounds; round++) {
    for (int i = 0; i < kShare; i++) Add(own + i, 1);
    for (int i = 0; i + kDeep < kShare; i += 100) {
      Add(own + i, kDeep);
      AddHandOverHand(own + i, kDeep);
    }
    for (int i = round; i < kShare; i += 50) {
      if (pthread_mutex_trylock(&counters[others + i].mutex) != 0) continue;
      counters[others + i].value++;
      pthread_mutex_unlock(&counters[others + i].mutex);
    }
    pthread_spin_lock(&spin);
    spun++;
    pthread_spin_unlock(&spin);
  }
  return NULL;
}

int main(void) {
  for (int i = 0; i < kLocks; i++) pthread_mutex_init(&counters[i].mutex, NULL);
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  const pthread_t one = Start(Run, NULL);
  const pthread_t other = Start(Run, &is_second);
  Join(one);
  Join(other);
  return Done();
}
