// The later thread may have the ended one's stack and pthread_t, but it is another thread.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include "race.h"

int value;
pid_t writer_id;

static void* First(void* argument) {
  pthread_detach(pthread_self());
  __atomic_store_n(&writer_id, ThreadId(), __ATOMIC_SEQ_CST);
  value = 1;  // [a]
  return argument;
}

static void* Idle(void* argument) { return argument; }

static void* Second(void* argument) {
  value = 2;  // [b]
  return argument;
}

int main(void) {
  Start(First, NULL);
  pid_t id;
  while ((id = __atomic_load_n(&writer_id, __ATOMIC_SEQ_CST)) == 0) usleep(1000);
  WaitUntilEnded(id);
  for (int i = 0; i < 4; i++) Join(Start(Idle, NULL));
  Join(Start(Second, NULL));
  return Done();
}
