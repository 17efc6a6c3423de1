// A weak pointer that is locked while the last strong one goes.
// CLEAN
#include <memory>
#include <thread>

#include "race.h"

int main() {
  auto object = std::make_shared<int>(1);
  std::thread reader([weak = std::weak_ptr<int>(object)] {
    if (const auto strong = weak.lock()) Use(*strong);
  });
  object.reset();
  reader.join();
  return Done();
}
