// Threads that work on memory at low addresses, where a program that is not position independent
// has its variables: what they compute, and where a stray access is told to be.
#include "guest.h"

enum { kThreads = 2, kRounds = 60, kPasses = 40, kWords = 8192, kMilliseconds = 1000 };

static long globals[kThreads * kWords];
static pthread_barrier_t barrier;
static volatile long* table;
static long rounds;  // Made with this table.
static void* fault_address;
static sigjmp_buf after_fault;

static long Milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// In turn each thread has each half of the table, for a second or so: where every access traps, a
// round takes a good part of it.
static void* Work(void* argument) {
  const long self = (long)argument;
  const long end = Milliseconds() + kMilliseconds;
  for (long round = 0; round < rounds; ++round) {
    volatile long* const half = table + (round + self) % kThreads * kWords;
    for (int pass = 0; pass < kPasses; ++pass) {
      for (long i = 0; i < kWords; ++i) half[i] += i;
    }
    pthread_barrier_wait(&barrier);
    if (self == 0 && Milliseconds() > end && round + 1 < rounds) rounds = round + 1;
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

static bool Adds(volatile long* words) {
  table = words;
  rounds = kRounds;
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; ++i) threads[i] = Start(Work, (void*)i);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  bool right = true;
  for (long i = 0; i < kThreads * kWords; ++i)
    right = right && words[i] == i % kWords * rounds * kPasses;
  return right;
}

static void NoteFault(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)context;
  fault_address = info->si_addr;
  siglongjmp(after_fault, 1);
}

// Runs off the end of the table.
static void* Stray(void* argument) {
  if (sigsetjmp(after_fault, 1) == 0) {
    for (volatile long* word = argument;; ++word) *word += 1;
  }
  return NULL;
}

int main(void) {
  pthread_barrier_init(&barrier, NULL, kThreads);
  Fact(Adds(globals), "variables");
  static const unsigned long kAddresses[] = {0x10000000, 0x10000000000, 0x164e94940000,
                                             0x250000000000, 0x564e94940000};
  const size_t size = sizeof globals;
  for (size_t i = 0; i < sizeof kAddresses / sizeof kAddresses[0]; ++i) {
    void* const memory = mmap((void*)kAddresses[i], size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    Fact(memory == (void*)kAddresses[i] && Adds(memory), "memory at %#lx", kAddresses[i]);
    Handle(SIGSEGV, NoteFault, 0);
    fault_address = NULL;
    pthread_t other = Start(Stray, memory);
    pthread_join(other, NULL);
    Fact(fault_address == (char*)memory + size, "an access behind it is told to be there");
    munmap(memory, size);
  }
  return Done();
}
