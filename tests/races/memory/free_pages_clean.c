// Pages given back by MADV_FREE are what the next one to write makes of them.
// CLEAN
#include <semaphore.h>
#include <sys/mman.h>

#include "race.h"

static int* words;
pid_t writer_id;
sem_t never;

static void* Writer(void* argument) {
  __atomic_store_n(&writer_id, ThreadId(), __ATOMIC_SEQ_CST);
  words[3] = 1;
  return argument;
}

static void* Idle(void* argument) {
  sem_wait(&never);
  return argument;
}

int main(void) {
  sem_init(&never, 0, 0);
  const pthread_t idle = Start(Idle, NULL);
  words = (int*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Check(words != MAP_FAILED);
  const pthread_t writer = Start(Writer, NULL);
  pid_t id;
  while ((id = __atomic_load_n(&writer_id, __ATOMIC_SEQ_CST)) == 0) usleep(1000);
  WaitUntilEnded(id);
  Check(madvise(words, 4096, MADV_FREE) == 0);
  words[3] = 2;
  sem_post(&never);
  Join(writer);
  Join(idle);
  return Done();
}
