// The nodes of lists and trees are linked by code in libstdc++.so: whoever looks for
// something meanwhile races with it, even if it does not come to the new node.
// RACE read-write - a b
// RACE read-write - c d
// ALSO any a b
// ALSO any c d
// BUILD O0 O2 clang-O2 gcc-O2-nodebug
#include <list>
#include <map>

#include "run_to_end.h"

static std::map<int, int> numbers;
static std::list<int> values;

static void* Insert(void* argument) {
  numbers.emplace(77, 7);  // [a]
  return argument;
}

static void* Push(void* argument) {
  values.push_front(4);  // [c]
  return argument;
}

int main() {
  for (int i = 0; i < 8; i++) numbers[10 * i] = i;
  for (int i = 0; i < 3; i++) values.push_back(i);
  const pthread_t idle = StartIdle();
  const pthread_t insert = RunToEnd(Insert, nullptr);
  const pthread_t push = RunToEnd(Push, nullptr);
  const bool found = numbers.find(60) != numbers.end();  // [b]
  const bool any = !values.empty();                      // [d]
  EndIdle(idle);
  Join(insert);
  Join(push);
  return found && any ? 0 : 1;
}
