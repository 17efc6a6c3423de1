// One thread has taken a lock many times, the last ones untold, and writes after it has given it
// back. The other one takes the lock later: that orders what was done under the lock, and no more.
// OPTIONS --repeats-after=0
// RACE write-write global:after a b
// LOCKS b 1
// MAY-MISS shared: each place runs once
#include "biased_lock.h"

int after;

static void AfterLast(void) {
  after = 1;  // [a]
}

static void Then(void) {
  pthread_mutex_lock(&mutex);
  under++;
  after = 2;  // [b]
  pthread_mutex_unlock(&mutex);
}

int main(void) {
  RunAfterOften(Then);
  return Done();
}
