// xadd, cmpxchg and bts without lock prefix are plain accesses.
// RACE write-write global:words+0 xadd xadd
// RACE write-write global:words+8 cmpxchg cmpxchg
// RACE write-write global:words+16 bts bts
// MAY-MISS shared: each place runs once
#include "race.h"

long words[3];

static void* Changes(void* argument) {
  long one = 1;
  __asm__ volatile("xaddq %0, %1" : "+r"(one), "+m"(words[0]));             // [xadd]
  __asm__ volatile("cmpxchgq %1, %0" : "+m"(words[1]) : "r"(7l), "a"(0l));  // [cmpxchg]
  __asm__ volatile("btsq $3, %0" : "+m"(words[2]));                         // [bts]
  return argument;
}

int main(void) {
  RunTwo(Changes, Changes);
  return Done();
}
