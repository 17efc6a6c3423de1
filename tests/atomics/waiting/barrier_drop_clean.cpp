// std::barrier whose members leave one after the other, with a completion.
// CLEAN
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include <barrier>
#include <thread>
#include <vector>

#include "race.h"

static int parts[3], sum;

int main() {
  auto completion = []() noexcept {
    for (int part : parts) sum += part;
  };
  std::barrier barrier(3, completion);
  std::vector<std::thread> threads;
  for (int me = 0; me < 3; me++) {
    threads.emplace_back([me, &barrier] {
      for (int i = 0; i <= me; i++) {
        parts[me] = i;
        if (i == me) {
          barrier.arrive_and_drop();
        } else {
          auto token = barrier.arrive();
          barrier.wait(std::move(token));
          Use(sum);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return Done();
}
