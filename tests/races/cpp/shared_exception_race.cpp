// An exception that threads share is changed by one that has given it up already, and by one that
// never had it.
// RACE write-write heap a b
// BUILD O0 O2 libcxx
#include <exception>
#include <thread>

#include "race.h"

struct Failure {
  int reason;
};

int main() {
  std::exception_ptr pointer;
  Failure* shared = nullptr;
  try {
    throw Failure{0};
  } catch (Failure& failure) {
    shared = &failure;
    pointer = std::current_exception();
  }
  std::thread gives_up([own = pointer, shared]() mutable {
    own = nullptr;
    shared->reason = 1;  // [a]
  });
  std::thread other([shared] {
    shared->reason = 2;  // [b]
  });
  gives_up.join();
  other.join();
  return Done();
}
