// sem_trywait, sem_timedwait and sem_clockwait that come through are ordered after the post.
// CLEAN
// BUILD O0 O2 static
#include <semaphore.h>
#include <time.h>

#include "race.h"

int values[3];
static sem_t semaphores[3];

static void* Posts(void* argument) {
  for (int i = 0; i < 3; i++) {
    values[i] = 1;
    sem_post(&semaphores[i]);
  }
  return argument;
}

static void* Waits(void* argument) {
  struct timespec deadline;
  while (sem_trywait(&semaphores[0]) != 0) usleep(1000);
  values[0]++;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += 60;
  Check(sem_timedwait(&semaphores[1], &deadline) == 0);
  values[1]++;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  deadline.tv_sec += 60;
  Check(sem_clockwait(&semaphores[2], CLOCK_MONOTONIC, &deadline) == 0);
  values[2]++;
  return argument;
}

int main(void) {
  for (int i = 0; i < 3; i++) sem_init(&semaphores[i], 0, 0);
  RunTwo(Posts, Waits);
  return values[0] + values[1] + values[2] == 6 ? Done() : 1;
}
