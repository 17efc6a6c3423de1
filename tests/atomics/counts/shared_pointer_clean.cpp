// Each thread has its own copy of a shared pointer; who drops the last deletes.
// CLEAN
// TAGS fast
#include <memory>
#include <thread>

#include "race.h"

struct Object {
  int value = 3;
  ~Object() { value = 0; }
};

int main() {
  auto object = std::make_shared<Object>();
  std::thread first([copy = object]() mutable {
    Use(copy->value);
    copy.reset();
  });
  std::thread second([copy = object]() mutable {
    Use(copy->value);
    copy.reset();
  });
  object.reset();
  first.join();
  second.join();
  return Done();
}
