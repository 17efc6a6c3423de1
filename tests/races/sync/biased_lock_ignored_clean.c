// One thread has taken a lock many times, the last ones untold. An annotation ends all that is left
// untold, and a thread that starts after that takes the lock.
// OPTIONS --repeats-after=0
// CLEAN
#include "annotations.h"
#include "biased_lock.h"

static void AfterLast(void) {}

static void* Late(void* argument) {
  Add();
  return argument;
}

static void Then(void) {
  ANNOTATE_IGNORE_READS_BEGIN();
  ANNOTATE_IGNORE_READS_END();
  Join(Start(Late, NULL));
}

int main(void) {
  RunAfterOften(Then);
  return Done();
}
