// A new thread on the stack of one that was detached and has ended.
// CLEAN
#include "race.h"

pid_t ids[8];

static void* Worker(void* argument) {
  volatile int local[256];
  pthread_detach(pthread_self());
  for (int i = 0; i < 256; i += 16) local[i] = i;
  Use(local[16]);
  __atomic_store_n((pid_t*)argument, ThreadId(), __ATOMIC_SEQ_CST);
  return NULL;
}

int main(void) {
  for (int i = 0; i < 8; i++) {
    Start(Worker, &ids[i]);
    pid_t id;
    while ((id = __atomic_load_n(&ids[i], __ATOMIC_SEQ_CST)) == 0) usleep(1000);
    WaitUntilEnded(id);
  }
  return Done();
}
