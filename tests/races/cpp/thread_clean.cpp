// std::thread with arguments by value and by reference, joined before their use.
// CLEAN
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "race.h"

static void Append(std::string text, std::vector<std::string>& to) { to.push_back(text + "!"); }

int main() {
  std::vector<std::string> one;
  std::vector<std::string> other;
  std::thread first(Append, "a string long enough to live in the heap", std::ref(one));
  std::thread second(Append, "short", std::ref(other));
  first.join();
  second.join();
  return one[0].size() + other[0].size() == 47 ? Done() : 1;
}
