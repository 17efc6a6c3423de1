// Another thread writes to a page that the first one has long kept to itself, over births and ends
// of threads; the first one writes there after it, which a relaxed flag does not order.
// RACE write-write global:table+16776 other first
// SECONDS 60
#include "pages_kept.h"

static int flag;

static void* Other(void* argument) {
  table[4][49] = 1;  // [other]
  __atomic_store_n(&flag, 1, __ATOMIC_RELAXED);
  return argument;
}

int main(void) {
  WorkByRounds();
  const pthread_t thread = Start(Other, NULL);
  while (!__atomic_load_n(&flag, __ATOMIC_RELAXED)) usleep(1000);
  table[4][49] = 2;  // [first]
  Join(thread);
  return Done();
}
