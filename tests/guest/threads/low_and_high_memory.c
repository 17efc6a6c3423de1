// Threads that work on memory at low addresses and on memory exactly 0x600000000000 above it, where
// the monitor's second view of high memory would be the low one: each keeps what is its own.
#include "guest.h"

enum { kThreads = 2, kRounds = 8, kPages = 4, kStep = 512 };
static const unsigned long kDistance = 0x600000000000;

static long variables[kPages * kPage / sizeof(long)];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile long *low, *high;

static void* Work(void* unused) {
  (void)unused;
  for (int round = 0; round < kRounds; ++round) {
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i += kStep / sizeof(long)) {
      low[i] += 1;
      if (high != NULL) high[i] += 3 + low[i];
    }
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static void InThreads(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) threads[i] = Start(Work, NULL);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
}

// Whether all words have been worked on for so many rounds, of which the high ones only in the
// last.
static bool Holds(long rounds, long high_rounds) {
  bool right = true;
  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i += kStep / sizeof(long)) {
    const long before = rounds - high_rounds;
    const long sum = (rounds * (rounds + 1) - before * (before + 1)) / 2;
    right = right && low[i] == rounds && (high == NULL || high[i] == 3 * high_rounds + sum);
  }
  return right;
}

static volatile long* Place(unsigned long address, int protection) {
  void* const memory = mmap((void*)address, sizeof variables, protection,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  return memory == (void*)address ? memory : NULL;
}

int main(void) {
  enum { kAll = kThreads * kRounds };
  static const unsigned long kAddresses[] = {0x10000000, 0xa0000000000, 0x150000000000};
  for (size_t i = 0; i < sizeof kAddresses / sizeof kAddresses[0]; ++i) {
    low = Place(kAddresses[i], PROT_READ | PROT_WRITE);
    high = NULL;
    InThreads();
    Fact(low != NULL && Holds(kAll, 0), "memory at %#lx alone", kAddresses[i]);
    high = Place(kAddresses[i] + kDistance, PROT_NONE);
    mprotect((void*)high, sizeof variables, PROT_READ | PROT_WRITE);
    InThreads();
    Fact(high != NULL && Holds(2 * kAll, kAll), "then with other memory above it");
    munmap((void*)high, sizeof variables);
    high = NULL;
    InThreads();
    Fact(Holds(3 * kAll, 0), "then alone again");
    munmap((void*)low, sizeof variables);
    // The other way round.
    volatile long* const first = Place(kAddresses[i] + kDistance, PROT_READ | PROT_WRITE);
    low = first;
    InThreads();
    // However it comes to be there.
    if (i == 0) {
      low = mmap((void*)kAddresses[i], sizeof variables, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    } else if (i == 1) {
      low = Place(kAddresses[i], PROT_NONE);
      mprotect((void*)low, sizeof variables, PROT_READ | PROT_WRITE);
    } else {
      low = Place(kAddresses[i], PROT_READ | PROT_WRITE);
    }
    high = first;
    for (size_t j = 0; j < sizeof variables / sizeof variables[0]; ++j) high[j] = 0;
    InThreads();
    Fact(Holds(kAll, kAll), "the high one first");
    munmap((void*)low, sizeof variables);
    munmap((void*)high, sizeof variables);
  }
  // Above the program's own code and variables, where it is not position independent.
  const unsigned long code = (unsigned long)&Work & -(unsigned long)kPage;
  low = variables;
  high = code < kDistance / 2 ? Place(code + kDistance, PROT_READ | PROT_WRITE) : NULL;
  InThreads();
  Fact(Holds(kAll, high != NULL ? kAll : 0), "memory above the program's code");
  if (high != NULL) munmap((void*)high, sizeof variables);
  return Done();
}
