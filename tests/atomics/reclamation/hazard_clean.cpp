// A hazard pointer: who takes the object away waits until nobody names it.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<int*> shared{new int(1)};
static std::atomic<int*> hazard;

int main() {
  std::thread reader([] {
    for (int i = 0; i < 3; i++) {
      int* object = shared.load();
      for (;;) {
        hazard.store(object);
        int* const again = shared.load();
        if (again == object) break;
        object = again;
      }
      Use(*object);
      hazard.store(nullptr, std::memory_order_release);
    }
  });
  for (int i = 2; i < 4; i++) {
    int* const old = shared.exchange(new int(i));
    while (hazard.load(std::memory_order_acquire) == old) usleep(100);
    delete old;
  }
  reader.join();
  delete shared.load();
  return Done();
}
