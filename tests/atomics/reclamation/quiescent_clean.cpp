// Epochs: readers announce the one they have seen, and what is older than all announcements goes.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<int*> shared{nullptr};
static std::atomic<int> epoch{1}, announced;

int main() {
  shared.store(new int(1));
  std::thread reader([] {
    for (int i = 0; i < 3; i++) {
      announced.exchange(epoch.load());
      Use(*shared.load());
      announced.exchange(0);
    }
  });
  for (int i = 2; i < 4; i++) {
    int* const old = shared.exchange(new int(i));
    const int now = epoch.fetch_add(1) + 1;
    for (int seen = announced.load(); seen != 0 && seen < now; seen = announced.load()) usleep(100);
    delete old;
  }
  reader.join();
  delete shared.load();
  return Done();
}
