// Threads on different elements of one std::vector, and on strings of their own.
// CLEAN
#include <string>
#include <thread>
#include <vector>

#include "race.h"

int main() {
  std::vector<char> values(8);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++) {
    threads.emplace_back([&values, i] {
      const std::string text(20, static_cast<char>('a' + i));
      values[i * 2] = text[i];
      values[i * 2 + 1] = text[0];
    });
  }
  for (std::thread& thread : threads) thread.join();
  return values[0] == 'a' && values[7] == 'd' ? Done() : 1;
}
