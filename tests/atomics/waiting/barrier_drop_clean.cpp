// std::barrier whose members leave one after the other, with a completion.
// CLEAN
#include "barrier_drop.h"

static int sum;

int main() {
  return RunDropping(
      []() noexcept {
        for (int part : parts) sum += part;
      },
      [](auto& barrier) {
        auto token = barrier.arrive();
        barrier.wait(std::move(token));
        Use(sum);
      });
}
