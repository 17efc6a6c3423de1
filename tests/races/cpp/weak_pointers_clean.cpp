// The block that has an object's counts is given back by the last of those who point to it, some of
// them weakly.
// CLEAN
// BUILD O0 O2 libcxx
#include <memory>
#include <thread>

#include "race.h"

struct Object {
  long value = 3;
};

int main() {
  auto object = std::make_shared<Object>();
  const auto looks = [weak = std::weak_ptr<Object>(object)]() mutable {
    if (const auto own = weak.lock()) Use(own->value);
    weak.reset();
  };
  std::thread one(looks), other(looks);
  Use(object->value);
  object.reset();
  one.join();
  other.join();
  return Done();
}
