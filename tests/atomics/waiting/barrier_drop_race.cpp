// What a barrier's completion writes is read between arriving and waiting, too.
// RACE any global:sum c a
// MAY-MISS shared: who had the page first did so alone
#include "barrier_drop.h"

static int sum;

int main() {
  return RunDropping(
      []() noexcept {
        for (int part : parts) sum += part;  // [c]
      },
      [](auto& barrier) {
        auto token = barrier.arrive();
        Use(sum);  // [a]
        barrier.wait(std::move(token));
        Use(sum);
      });
}
