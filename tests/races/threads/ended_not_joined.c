// That a thread has ended, as the kernel tells, orders nothing as long as nobody joins it.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include "race.h"

int value;
pid_t writer_id;

static void* Writer(void* argument) {
  __atomic_store_n(&writer_id, ThreadId(), __ATOMIC_SEQ_CST);
  value = 1;  // [a]
  return argument;
}

int main(void) {
  const pthread_t writer = Start(Writer, NULL);
  pid_t id;
  while ((id = __atomic_load_n(&writer_id, __ATOMIC_SEQ_CST)) == 0) usleep(1000);
  WaitUntilEnded(id);
  value = 2;  // [b]
  Join(writer);
  return Done();
}
