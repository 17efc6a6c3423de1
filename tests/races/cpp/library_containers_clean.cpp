// Strings, lists, trees and hash tables under a lock, by code in libstdc++.so; streams of each
// thread's own, which use strings of theirs, and the standard one, which all may use.
// CLEAN
// BUILD O0 O2 clang-O2 gcc-O2-nodebug
// FLAGS -std=c++17
#include <iostream>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>

#include "run_threads.h"

static std::mutex mutex;
static std::map<std::string, int> counts;
static std::set<int> numbers;
static std::list<std::string> names;
static std::unordered_map<std::string, int> table;
static std::string text;

static void Work(int me) {
  for (int i = 0; i < 10; i++) {
    std::ostringstream stream;
    stream << "a rather long name: " << i * (me + 1) << ' ' << 1.5;
    const std::string name = stream.str();
    std::cerr << "" << std::string();
    const std::lock_guard<std::mutex> lock(mutex);
    counts[name]++;
    numbers.insert(i * (me + 1));
    names.push_back(name);
    table[name]++;
    text += name.substr(2, 7);
    if (names.size() > 4) names.pop_front();
    if (text.size() > 50) text.erase(0, 30);
    if (counts.size() > 5) counts.erase(counts.begin());
  }
}

int main() {
  RunNumbered(2, Work);
  return names.empty() || text.empty() ? 1 : 0;
}
