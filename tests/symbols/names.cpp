// What symbolizer_test looks for names in. Lines marked with a name are looked up by it.
#include "tests/symbols/names.h"

#include <atomic>
#include <cstdio>
#include <memory>

volatile int names_sink;
std::atomic<int> names_atomic;
std::shared_ptr<int> names_shared;

namespace names {

struct Point {
  int x;
  int y[3];
  std::atomic<long> hits;
};

Point table[4];
Parts parts;
int plain_global = 7;
static int file_static = 3;
thread_local int thread_local_value = 5;

[[gnu::always_inline]] inline int Innermost(int value) {
  names_sink = value;  // MARK innermost
  return value + 1;
}

[[gnu::always_inline]] inline int Middle(int value) {
  return Innermost(value) * 2;  // MARK middle
}

[[gnu::noinline]] int Outer(int value) {
  return Middle(value) + 3;  // MARK outer
}

[[gnu::noinline]] int CountCalls() {
  static int calls;
  calls += 1;
  return calls + file_static++;
}

[[gnu::noinline]] int LoadAtomic() {
  return names_atomic.load(std::memory_order_acquire);  // MARK atomic
}

[[gnu::noinline]] void StoreAtomic(int value) {
  names_atomic.store(value, std::memory_order_release);
}

[[gnu::noinline]] int LoadPlain() { return plain_global + table[2].y[1]; }

[[gnu::noinline]] void Share() {
  std::shared_ptr<int> copy = names_shared;
  names_sink = *copy;
}

[[gnu::noinline]] int Lazily() {
  static const int lazy = LoadPlain();
  return lazy;
}

class Klass {
 public:
  [[gnu::noinline]] int Method(int value) const { return Outer(value) + member_; }

 private:
  int member_ = 1;
};

}  // namespace names

int main() {
  names_shared = std::make_shared<int>(1);
  const names::Klass object;
  names::StoreAtomic(object.Method(3));
  names::Share();
  names::table[3].hits = names::LoadAtomic() + names::LoadPlain();
  names::thread_local_value += names::CountCalls() + names::Lazily() + CFunction(names_sink);
  names_sink = names::parts.diamond.own;
  return names::table[3].hits == 12345 && names::thread_local_value == 3;
}
