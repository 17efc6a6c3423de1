// One thread uses std::atomic_ref, the other writes plainly.
// RACE atomic-plain global:counter a b
// MAY-MISS shared: each place runs once
#include <atomic>
#include <thread>

#include "race.h"

long counter;

int main() {
  std::thread careful([] {
    std::atomic_ref(counter).fetch_add(1);  // [a]
  });
  counter = 5;  // [b]
  Escape(&counter);
  careful.join();
  return Done();
}
