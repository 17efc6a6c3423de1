// Strings are changed by code in libstdc++.so, as in all programs built before C++20, and read by
// others. At -O2 the second function ends in a jump there: the change is then its caller's.
// RACE read-write global a b
// ONE-OF any global c d
// ONE-OF any global e d
// ALSO any a b
// ALSO any c d
// ALSO any e d
// BUILD O0 O2 clang-O2 gcc-O2-stripped
// FLAGS -std=c++17
#include <string>

#include "run_to_end.h"

static std::string text = "one that does not fit into the object itself";
static std::string name = "another that does not fit into the object";

static void* Append(void* argument) {
  text += "!";  // [a]
  return argument;
}

static void Assign(const char* other) {
  name = other;  // [c]
}

static void* Rename(void* argument) {
  void (*volatile assign)(const char*) = Assign;
  assign("other");  // [e]
  return argument;
}

int main() {
  const pthread_t idle = StartIdle();
  const pthread_t append = RunToEnd(Append, nullptr);
  const pthread_t rename = RunToEnd(Rename, nullptr);
  const bool grown = text.size() == 45;        // [b]
  const bool renamed = name.compare("") != 0;  // [d]
  EndIdle(idle);
  Join(append);
  Join(rename);
  return grown && renamed ? 0 : 1;
}
