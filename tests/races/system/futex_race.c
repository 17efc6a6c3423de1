// A futex wakes a thread and orders nothing by itself.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <linux/futex.h>
#include <time.h>

#include "race.h"

int value;
int word;

static void* Sleeper(void* argument) {
  const struct timespec limit = {0, 1000000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0);
  value = 1;  // [a]
  return argument;
}

int main(void) {
  const pthread_t sleeper = Start(Sleeper, NULL);
  value = 2;  // [b]
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  Join(sleeper);
  return Done();
}
