// Copies of a std::shared_ptr: whoever drops the last one destroys what others have used.
// CLEAN
// BUILD O0 O2 static
#include <memory>
#include <thread>

#include "race.h"

struct Object {
  int number = 1;
  ~Object() { number = 0; }
};

int main() {
  auto object = std::make_shared<Object>();
  std::thread first([copy = object]() mutable {
    Use(copy->number);
    copy.reset();
  });
  std::thread second([copy = object]() mutable {
    Use(copy->number);
    copy.reset();
  });
  object.reset();
  first.join();
  second.join();
  return Done();
}
