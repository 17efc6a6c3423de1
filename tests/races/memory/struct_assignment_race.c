// A structure is assigned as a whole while another thread reads one member.
// RACE read-write global:target a b
// MAY-MISS shared: each place runs once
#include "race.h"

struct Block {
  long members[12];
} source, target;

static void* Assigner(void* argument) {
  target = source;  // [a]
  return argument;
}

static void* Reader(void* argument) {
  Use(target.members[7]);  // [b]
  return argument;
}

int main(void) {
  RunTwo(Assigner, Reader);
  return Done();
}
