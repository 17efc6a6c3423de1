// A System V semaphore that is set orders as one that is given back does, also for who looks at it.
// CLEAN
#include <sys/ipc.h>
#include <sys/sem.h>

#include "race.h"

int by_set, by_look;
static int semaphores;

static void* Sets(void* argument) {
  by_set = 1;
  Check(semctl(semaphores, 0, SETVAL, 1) == 0);
  by_look = 1;
  Check(semctl(semaphores, 1, SETVAL, 1) == 0);
  return argument;
}

static void* Waits(void* argument) {
  struct sembuf take = {0, -1, 0};
  Check(semop(semaphores, &take, 1) == 0);
  by_set++;
  while (semctl(semaphores, 1, GETVAL) == 0) usleep(1000);
  by_look++;
  return argument;
}

int main(void) {
  semaphores = semget(IPC_PRIVATE, 2, 0600);
  Check(semaphores >= 0);
  for (int i = 0; i < 2; i++) Check(semctl(semaphores, i, SETVAL, 0) == 0);
  RunTwo(Sets, Waits);
  semctl(semaphores, 0, IPC_RMID);
  return Done();
}
