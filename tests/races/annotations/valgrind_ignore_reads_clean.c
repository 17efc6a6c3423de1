// Reads that valgrind's client requests leave out do not count.
// CLEAN
// TSAN-DIFFERS it knows nothing of valgrind's requests
#include "race.h"
#include "valgrind_requests.h"

int value;

static void* Writes(void* argument) {
  value = 1;
  return argument;
}

static void* Looks(void* argument) {
  Request(kRecordReads, NULL, 0);
  Use(value);
  Request(kRecordReads, (void*)1, 0);
  return argument;
}

int main(void) {
  RunTwo(Writes, Looks);
  return Done();
}
