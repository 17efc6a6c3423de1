// What --track names counts, whatever --untrack says.
// OPTIONS --untrack=[ct]o* --track=total
// RACE any global:total t t
// ALSO any t t
// MAY-MISS shared: the places run once in each thread
#include "race.h"

int counter;
int total;

static void* Worker(void* argument) {
  counter++;
  total++;  // [t]
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  return Done();
}
