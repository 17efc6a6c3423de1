// A block published through an atomic pointer, by a store that is a plain mov.
// CLEAN
#include <stdatomic.h>

#include "race.h"

struct Message {
  int number;
};
_Atomic(struct Message*) box;

static void* Sender(void* argument) {
  struct Message* message = (struct Message*)malloc(sizeof(*message));
  message->number = 4;
  atomic_store_explicit(&box, message, memory_order_release);
  return argument;
}

static void* Receiver(void* argument) {
  struct Message* message;
  while ((message = atomic_load_explicit(&box, memory_order_acquire)) == NULL) usleep(1000);
  message->number++;
  Check(message->number == 5);
  free(message);
  return argument;
}

int main(void) {
  RunTwo(Sender, Receiver);
  return Done();
}
