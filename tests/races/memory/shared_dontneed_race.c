// MADV_DONTNEED takes nothing out of a shared mapping: what was written there still is.
// RACE write-write mapping a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS it forgets the history
#include <semaphore.h>
#include <sys/mman.h>

#include "race.h"

static int* words;
pid_t writer_id;
sem_t never;

static void* Writer(void* argument) {
  __atomic_store_n(&writer_id, ThreadId(), __ATOMIC_SEQ_CST);
  words[3] = 1;  // [a]
  return argument;
}

static void* Idle(void* argument) {
  sem_wait(&never);
  return argument;
}

int main(void) {
  sem_init(&never, 0, 0);
  const pthread_t idle = Start(Idle, NULL);
  words = (int*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Check(words != MAP_FAILED);
  const pthread_t writer = Start(Writer, NULL);
  pid_t id;
  while ((id = __atomic_load_n(&writer_id, __ATOMIC_SEQ_CST)) == 0) usleep(1000);
  WaitUntilEnded(id);
  Check(madvise(words, 4096, MADV_DONTNEED) == 0 && words[4] == 0);
  words[3] = 2;  // [b]
  sem_post(&never);
  Join(writer);
  Join(idle);
  return Done();
}
