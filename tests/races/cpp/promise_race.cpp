// The sender goes on writing to what it has sent.
// RACE write-write heap:4 a b
// MAY-MISS shared: each place runs once
#include <future>
#include <thread>

#include "race.h"

int main() {
  std::promise<int*> promise;
  std::future<int*> future = promise.get_future();
  std::thread sender([&promise] {
    int* sent = new int(0);
    promise.set_value(sent);
    *sent = 1;  // [a]
  });
  int* received = future.get();
  *received = 2;  // [b]
  sender.join();
  delete received;
  return Done();
}
