// Who closes a descriptor does not come before who gets another number.
// RACE any global:connection a b
// MAY-MISS shared: who had the page first did so alone
#include <sys/eventfd.h>

#include "race.h"

int connection;
static int own, others;

static void* Serves(void* argument) {
  connection = 1;  // [a]
  Escape(&connection);
  close(others);
  return argument;
}

static void* Makes(void* argument) {
  close(own);
  Check(eventfd(0, 0) == own);  // the lowest one
  connection = 2;               // [b]
  return argument;
}

int main(void) {
  own = eventfd(0, 0);
  others = eventfd(0, 0);
  Check(own >= 0 && others > own);
  RunTwo(Serves, Makes);
  return Done();
}
