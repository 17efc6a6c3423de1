// Peterson's lock: sequentially consistent loads and stores, and no read-modify-write.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

int counter;
std::atomic<bool> wants[2];
std::atomic<int> turn;

static void Add(int mine) {
  for (int i = 0; i < 2; i++) {
    wants[mine] = true;
    turn = 1 - mine;
    while (wants[1 - mine] && turn == 1 - mine) usleep(100);
    counter++;
    wants[mine] = false;
  }
}

int main() {
  std::thread first(Add, 0);
  std::thread second(Add, 1);
  first.join();
  second.join();
  return counter == 4 ? Done() : 1;
}
