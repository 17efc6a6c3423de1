// Exceptions: deep, nested, rethrown, through destructors and C frames; unwinding needs exact
// return addresses.
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "guest.h"

namespace {

int destroyed = 0;
struct Counted {
  ~Counted() { ++destroyed; }
};

int Deep(int depth) {
  const Counted counted;
  if (depth == 0) throw std::out_of_range("deep");
  return Deep(depth - 1) + 1;
}

int Compare(const void*, const void*) { throw std::logic_error("through C"); }

}  // namespace

int main() {
  std::string what;
  try {
    Deep(500);
  } catch (const std::exception& error) {
    what = error.what();
  }
  Fact(what == "deep" && destroyed == 501, "through 501 frames with destructors");
  try {
    try {
      Deep(3);
    } catch (...) {
      std::throw_with_nested(std::runtime_error("outer"));
    }
  } catch (const std::runtime_error& error) {
    what = error.what();
    try {
      std::rethrow_if_nested(error);
    } catch (const std::exception& inner) {
      what += std::string("+") + inner.what();
    }
  }
  Fact(what == "outer+deep", "nested");
  int numbers[4] = {4, 3, 2, 1};
  what.clear();
  try {
    std::qsort(numbers, 4, sizeof(int), Compare);
  } catch (const std::logic_error& error) {
    what = error.what();
  }
  Fact(what == "through C", "through qsort");
  int caught = 0;
  for (int i = 0; i < 5000; ++i) {
    try {
      if (i % 2 == 0) throw i;
      throw std::make_unique<int>(i);
    } catch (int value) {
      caught += value == i;
    } catch (const std::unique_ptr<int>& value) {
      caught += *value == i;
    }
  }
  Fact(caught == 5000, "5000 in a row");
  try {
    std::vector<int>().at(1);
  } catch (const std::out_of_range&) {
    Fact(true, "from the library");
  }
  return Done();
}
