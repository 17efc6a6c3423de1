// Memory that is unmapped 4 GiB and more away from a flag, which has been set by an exchange, says
// nothing of the flag. It is read by code that is hot by then.
// CLEAN
// BUILD gcc-O2 gcc-O2-nodebug
// TAGS fast
// OPTIONS --hot-after=1000000000 --settle-after=0
#include <sys/mman.h>

#include "race.h"

static int* words;
static int data;
static int turns[1024];

__attribute__((noinline)) static int Load(const int* word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void* Sender(void* argument) {
  data = 7;
  __atomic_exchange_n(&words[0], 1, __ATOMIC_SEQ_CST);
  const size_t size = (size_t)4 << 30;
  char* memory =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  Check(memory != MAP_FAILED);
  memory[5] = 1;
  munmap(memory, size);
  usleep(300000);
  return argument;
}

static void* Receiver(void* argument) {
  long sum = 0;
  usleep(100000);
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < 2000; i++) sum += Load(&words[8 + i % 64]);
    __atomic_fetch_add(&turns[512], 1, __ATOMIC_SEQ_CST);
    usleep(1000);
  }
  Use(sum);
  while (Load(&words[0]) == 0) {
  }
  data++;
  return argument;
}

int main(void) {
  words = aligned_alloc(4096, 4096);
  for (int i = 0; i < 1024; i++) words[i] = 0;
  RunTwo(Sender, Receiver);
  return Done();
}
