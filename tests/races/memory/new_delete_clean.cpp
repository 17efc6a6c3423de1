// new and delete of every form, blocks that wander between threads without another order.
// CLEAN
// FLAGS -faligned-new
#include <malloc.h>

#include <new>
#include <thread>

#include "race.h"

struct alignas(64) Aligned {
  int values[600];
};

static void Work() {
  for (int i = 0; i < 3; i++) {
    int* block = new int[500];
    block[499] = i;
    delete[] block;
    auto* aligned = new Aligned;
    aligned->values[599] = i;
    delete aligned;
    char* unthrowing = new (std::nothrow) char[1800];
    unthrowing[0] = 1;
    delete[] unthrowing;
    std::this_thread::yield();
  }
}

int main() {
  mallopt(M_ARENA_MAX, 1);
  std::thread first(Work);
  std::thread second(Work);
  first.join();
  second.join();
  return Done();
}
