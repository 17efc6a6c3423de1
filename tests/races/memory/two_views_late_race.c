// A second view of a file comes while the first one is in use, below it: the history stays that of
// the memory.
// RACE write-write mapping a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS it takes two addresses for two places
#include <semaphore.h>
#include <sys/mman.h>

#include "race.h"

static int* view;
pid_t writer_id;
sem_t never;

static void* Writer(void* argument) {
  __atomic_store_n(&writer_id, ThreadId(), __ATOMIC_SEQ_CST);
  view[3] = 1;  // [a]
  return argument;
}

static void* Idle(void* argument) {
  sem_wait(&never);
  return argument;
}

int main(void) {
  sem_init(&never, 0, 0);
  const pthread_t idle = Start(Idle, NULL);
  const int file = memfd_create("views", 0);
  Check(file >= 0 && ftruncate(file, 4096) == 0);
  char* place = (char*)mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  view = (int*)mmap(place + 8192, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  Check(view != MAP_FAILED);
  const pthread_t writer = Start(Writer, NULL);
  pid_t id;
  while ((id = __atomic_load_n(&writer_id, __ATOMIC_SEQ_CST)) == 0) usleep(1000);
  WaitUntilEnded(id);
  int* const below =
      (int*)mmap(place, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  Check(below != MAP_FAILED);
  below[3] = 2;  // [b]
  sem_post(&never);
  Join(writer);
  Join(idle);
  return Done();
}
