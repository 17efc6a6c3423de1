// A value is handed over by sem_post to sem_wait, sem_trywait, sem_timedwait.
// CLEAN
#include <semaphore.h>
#include <time.h>

#include "race.h"

int value;
sem_t there;
sem_t back;

static void* Other(void* argument) {
  sem_wait(&there);
  value++;
  sem_post(&back);
  while (sem_trywait(&there) != 0) usleep(1000);
  value++;
  sem_post(&back);
  return argument;
}

int main(void) {
  sem_init(&there, 0, 0);
  sem_init(&back, 0, 0);
  const pthread_t other = Start(Other, NULL);
  value = 1;
  sem_post(&there);
  sem_wait(&back);
  value++;
  sem_post(&there);
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 20;
  Check(sem_timedwait(&back, &end) == 0);
  value++;
  Join(other);
  return value == 5 ? Done() : 1;
}
