// Two threads use one and the same shared pointer, one of them assigns.
// RACE read-write global:object a b
// MAY-MISS shared: each place runs once
#include <memory>
#include <thread>

#include "race.h"

static std::shared_ptr<int> object = std::make_shared<int>(1);
static std::shared_ptr<int> other = std::make_shared<int>(2);

int main() {
  std::thread reader([] {
    Use(reinterpret_cast<long>(object.get()));  // [a]
  });
  object.swap(other);  // [b]
  reader.join();
  return Done();
}
