// The count of a std::shared_ptr is atomic, the pointer itself is not.
// RACE read-write global:object a b
// MAY-MISS shared: each place runs once
#include <memory>
#include <thread>

#include "race.h"

std::shared_ptr<int> object;

int main() {
  object = std::make_shared<int>(1);
  std::thread reader([] {
    Use(reinterpret_cast<long>(object.get()));  // [a]
  });
  object = nullptr;  // [b]
  reader.join();
  return Done();
}
