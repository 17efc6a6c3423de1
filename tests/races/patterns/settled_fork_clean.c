// A forked child's first thread was another one of the parent's: what it need not be told of is not
// what the child's thread with that number uses.
// CLEAN
// BUILD gcc-O2 gcc-O2-nodebug
// TAGS fast
// SECONDS 60
// OPTIONS --hot-after=1000000000 --settle-after=0
#include <sys/wait.h>

#include "race.h"

enum { kRounds = 200, kThreads = 4 };

struct Sector {
  int words[128];
};

static struct Sector* flags;
static int values[kRounds][32];
static int stop, ready;
static int turns[2][128];

static void* Idle(void* argument) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) usleep(1000);
  return argument;
}

static void* Owner(void* argument) {
  for (int turn = 0; turn < 30; turn++) {
    for (int i = 0; i < kRounds; i++) Use(++flags[i].words[9]);
    __atomic_fetch_add(&turns[0][64], 1, __ATOMIC_SEQ_CST);
    usleep(1000);
  }
  __atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
  return Idle(argument);
}

static void* Sender(void* argument) {
  while (__atomic_fetch_add(&ready, 0, __ATOMIC_SEQ_CST) == 0) usleep(1000);
  for (int i = 0; i < kRounds; i++) {
    for (int wait = 0; wait < 4; wait++) usleep(20);
    values[i][0] = i;
    __atomic_exchange_n(&flags[i].words[0], 1, __ATOMIC_SEQ_CST);
  }
  return argument;
}

static void RunChild(void) {
  static const ThreadFunction functions[kThreads] = {Idle, Owner, Idle, Sender};
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; i++) threads[i] = Start(functions[i], NULL);
  while (__atomic_fetch_add(&ready, 0, __ATOMIC_SEQ_CST) == 0) usleep(1000);
  for (int i = 0; i < kRounds; i++) {
    for (unsigned looks = 0; __atomic_load_n(&flags[i].words[0], __ATOMIC_ACQUIRE) == 0; looks++) {
      if (looks % 256 == 0) __atomic_fetch_add(&turns[1][64], 1, __ATOMIC_SEQ_CST);
    }
    Check(values[i][0] == i);
    values[i][0]++;
  }
  __atomic_fetch_add(&stop, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; i < kThreads; i++) Join(threads[i]);
}

static void* Forker(void* argument) {
  const pid_t child = fork();
  if (child == 0) {
    RunChild();
    _exit(0);
  }
  int status = 0;
  Check(waitpid(child, &status, 0) == child && status == 0);
  return argument;
}

int main(void) {
  flags = aligned_alloc(4096, kRounds * sizeof *flags);
  for (int i = 0; i < kRounds; i++) {
    for (int k = 0; k < 128; k++) flags[i].words[k] = 0;
  }
  const pthread_t idle = Start(Idle, NULL);
  Join(Start(Forker, NULL));
  __atomic_fetch_add(&stop, 1, __ATOMIC_SEQ_CST);
  Join(idle);
  return Done();
}
