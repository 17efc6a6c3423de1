// A test-and-test-and-set lock of GCC's builtins, given back by a plain store; stripped too.
// CLEAN
// BUILD O0 O2 stripped static
#include "race.h"

static int lock;
int value;

static void* Adds(void* argument) {
  for (int i = 0; i < 5; i++) {
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) != 0) {
      while (__atomic_load_n(&lock, __ATOMIC_RELAXED) != 0) usleep(100);
    }
    value++;
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
  }
  return argument;
}

int main(void) {
  RunTwo(Adds, Adds);
  return value == 10 ? Done() : 1;
}
