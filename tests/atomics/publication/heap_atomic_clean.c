// A C11 atomic in a heap block: no variable of debug info, but the line's text names the operation.
// CLEAN
// LIMIT nodebug: the store is a plain mov
#include <stdatomic.h>

#include "race.h"

struct Channel {
  int value;
  atomic_int ready;
};

static void* Gives(void* argument) {
  struct Channel* const channel = argument;
  channel->value = 1;
  atomic_store_explicit(&channel->ready, 1, memory_order_release);
  return argument;
}

static void* Takes(void* argument) {
  struct Channel* const channel = argument;
  while (!atomic_load_explicit(&channel->ready, memory_order_acquire)) usleep(100);
  channel->value++;
  return argument;
}

int main(void) {
  struct Channel* const channel = calloc(1, sizeof *channel);
  const pthread_t first = Start(Gives, channel);
  const pthread_t second = Start(Takes, channel);
  Join(first);
  Join(second);
  const int value = channel->value;
  free(channel);
  return value == 2 ? Done() : 1;
}
