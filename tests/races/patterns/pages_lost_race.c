// Pages that go from one thread to another one order nothing in a program that synchronises by
// calls only: what the first one had done before it lost them races all the same.
// RACE read-write global:apart+1048576 write read
// BUILD O2 fixed
// SECONDS 60
// MAY-MISS shared: its owner wrote it before the page was shared
// MAY-MISS write-shared: its owner wrote it before the page was shared
#include "pages_lost.h"

static struct Apart apart;

static void* First(void* argument) {
  apart.result = 1;  // [write]
  Work(0);
  usleep(600000);  // what an ended thread had is nobody's
  return argument;
}

static void* Second(void* argument) {
  usleep(300000);
  Work(1);
  Use(apart.result);  // [read]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return 0;
}
