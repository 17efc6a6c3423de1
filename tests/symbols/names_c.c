#include <stdatomic.h>

#include "tests/symbols/names.h"

_Atomic int c_atomic;
int c_plain;
struct {
  int before;
  _Atomic long counters[4];
} c_mixed;

__attribute__((noinline)) int CFunction(int value) {
  static int c_static;
  c_static += value;
  c_plain = c_static;
  c_mixed.before = c_plain;
  atomic_fetch_add(&c_mixed.counters[1], 1);
  return atomic_load(&c_atomic) + c_static;
}
