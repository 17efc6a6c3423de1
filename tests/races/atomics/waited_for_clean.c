// Without debug info: words that nothing but plain instructions use, and for which loops wait that
// do nothing else, are atomic: a turn that two threads take, a message in the heap that one sleeps
// for.
// CLEAN
// BUILD gcc-O2-nodebug clang-O2-nodebug stripped
// OPTIONS --explain
// SAYS     no debug info: a loop that does nothing else waits for the word
// TSAN-DIFFERS it has no such option
// TAGS fast
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "race.h"

enum { kRounds = 40 };

struct Message {
  atomic_long number;
  long text;
};

static atomic_int turn;
static int rounds;

static void TakeTurns(int own) {
  for (int i = 0; i < kRounds; i++) {
    int pauses = 0;
    while (atomic_load_explicit(&turn, memory_order_acquire) != own) {
      __builtin_ia32_pause();
      if (++pauses > 10) sched_yield();
    }
    rounds++;
    atomic_store_explicit(&turn, !own, memory_order_release);
  }
}

static void* Sends(void* argument) {
  struct Message* message = argument;
  TakeTurns(0);
  message->text = kRounds;
  atomic_store_explicit(&message->number, 1, memory_order_release);
  return NULL;
}

static void* Receives(void* argument) {
  struct Message* message = argument;
  const struct timespec pause = {0, 100000};
  TakeTurns(1);
  while (atomic_load_explicit(&message->number, memory_order_acquire) == 0) nanosleep(&pause, NULL);
  Check(message->text == kRounds);
  return NULL;
}

int main(void) {
  struct Message* const message = calloc(1, sizeof *message);
  Check(message != NULL);
  const pthread_t sender = Start(Sends, message), receiver = Start(Receives, message);
  Join(sender);
  Join(receiver);
  free(message);
  return Done();
}
