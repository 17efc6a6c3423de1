// A plain int in a heap block as a flag.
// RACE read-write heap:8 a b
// ALSO any c d
// MAY-MISS shared: each place runs once in a thread
// LIMIT nodebug: a loop that does nothing else waits for it, as for an atomic one; the instructions are the same
#include "race.h"

struct Channel {
  int value;
  volatile int ready;
};

static void* Gives(void* argument) {
  struct Channel* const channel = argument;
  channel->value = 1;  // [c]
  channel->ready = 1;  // [a]
  return argument;
}

static void* Takes(void* argument) {
  struct Channel* const channel = argument;
  while (!channel->ready) usleep(100);  // [b]
  channel->value = 2;                   // [d]
  return argument;
}

int main(void) {
  struct Channel* const channel = calloc(1, sizeof *channel);
  const pthread_t first = Start(Gives, channel);
  const pthread_t second = Start(Takes, channel);
  Join(first);
  Join(second);
  free(channel);
  return Done();
}
