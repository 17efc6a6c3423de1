// The creator does not wait for the std::async task.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <future>

#include "race.h"

int value;

int main() {
  std::future<void> task = std::async(std::launch::async, [] {
    value = 1;  // [a]
  });
  value = 2;  // [b]
  task.get();
  return Done();
}
