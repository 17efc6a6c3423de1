// A named semaphore, opened twice, hands over.
// CLEAN
#include <fcntl.h>
#include <semaphore.h>

#include "race.h"

int value;
char name[32];

static void* Sender(void* argument) {
  sem_t* ready = sem_open(name, 0);
  Check(ready != SEM_FAILED);
  value = 1;
  sem_post(ready);
  sem_close(ready);
  return argument;
}

int main(void) {
  snprintf(name, sizeof(name), "/trapline-races-%d", (int)getpid());
  sem_t* ready = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
  Check(ready != SEM_FAILED);
  const pthread_t sender = Start(Sender, NULL);
  sem_wait(ready);
  value++;
  Join(sender);
  sem_close(ready);
  sem_unlink(name);
  return value == 2 ? Done() : 1;
}
