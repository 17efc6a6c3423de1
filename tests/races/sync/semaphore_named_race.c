// A named semaphore whose post comes too early.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <fcntl.h>
#include <semaphore.h>

#include "race.h"

int value;
sem_t* ready;

static void* Sender(void* argument) {
  sem_post(ready);
  value = 1;  // [a]
  return argument;
}

int main(void) {
  char name[32];
  snprintf(name, sizeof(name), "/trapline-races-%d", (int)getpid());
  ready = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
  Check(ready != SEM_FAILED);
  sem_unlink(name);
  const pthread_t sender = Start(Sender, NULL);
  sem_wait(ready);
  value = 2;  // [b]
  Join(sender);
  sem_close(ready);
  return Done();
}
