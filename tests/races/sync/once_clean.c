// What pthread_once ran is ordered before everyone who called it.
// CLEAN
#include "race.h"

int value;
pthread_once_t once = PTHREAD_ONCE_INIT;

static void Initialise(void) { value = 1; }

static void* User(void* argument) {
  pthread_once(&once, Initialise);
  Use(value);
  return argument;
}

int main(void) {
  const pthread_t third = Start(User, NULL);
  RunTwo(User, User);
  Join(third);
  return Done();
}
