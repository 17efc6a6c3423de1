// An exception that threads share is destroyed by whoever gives it up last, after all that the
// others have done with it: a count tells, which nothing but the C++ library changes.
// CLEAN
// BUILD O0 O2 clang-O2 libcxx static
#include <exception>
#include <thread>

#include "race.h"

struct Failure {
  explicit Failure(int reason) : reason(reason) {}
  Failure(const Failure& other) : reason(other.reason) {}
  ~Failure() { reason = 0; }
  int reason;
};

static int Use(const std::exception_ptr& pointer) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Failure& failure) {
    return failure.reason;
  }
}

int main() {
  std::exception_ptr pointer;
  try {
    throw Failure(7);
  } catch (...) {
    pointer = std::current_exception();
  }
  // The first of these threads uses it last, by its own pointer; another time while it is caught.
  int sum = 0;
  std::thread holds([own = pointer, &sum]() mutable {
    sum += Use(own);
    own = nullptr;
  });
  usleep(Opaque(2000));
  pointer = nullptr;
  holds.join();
  std::thread catches;
  try {
    throw Failure(8);
  } catch (const Failure& failure) {
    catches = std::thread([own = std::current_exception()]() mutable {
      usleep(Opaque(2000));
      own = nullptr;
    });
    sum += failure.reason;
  }
  catches.join();
  return sum == 15 ? Done() : 1;
}
