// Atomic counters of every size, by every lock-prefixed instruction.
// CLEAN
// FLAGS -mcx16
#include <stdint.h>

#include "race.h"

uint8_t byte;
uint16_t word;
uint32_t dword;
uint64_t qword;
uint64_t bits;
uint64_t exchanged;
unsigned __int128 pair __attribute__((aligned(16)));

static void* Worker(void* argument) {
  for (int i = 0; i < 3; i++) {
    __atomic_add_fetch(&byte, 1, __ATOMIC_SEQ_CST);
    __atomic_sub_fetch(&word, 1, __ATOMIC_SEQ_CST);
    Use((long)__atomic_fetch_add(&dword, 5, __ATOMIC_SEQ_CST));
    __atomic_or_fetch(&qword, 1UL << i, __ATOMIC_SEQ_CST);
    __atomic_xor_fetch(&qword, 1UL << (i + 8), __ATOMIC_SEQ_CST);
    __atomic_and_fetch(&qword, ~4UL, __ATOMIC_SEQ_CST);
    Use((long)__atomic_exchange_n(&exchanged, (uint64_t)i, __ATOMIC_SEQ_CST));
    __asm__ volatile("lock btsq %1, %0" : "+m"(bits) : "r"(3UL) : "cc");
    __asm__ volatile("lock incl %0" : "+m"(dword) : : "cc");
    __asm__ volatile("lock negl %0" : "+m"(dword) : : "cc");
    __asm__ volatile("lock cmpxchg16b %0"
                     : "+m"(pair)
                     : "a"(0UL), "d"(0UL), "b"(1UL), "c"(1UL)
                     : "cc");
  }
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  return byte == 6 ? Done() : 1;
}
