// atomic_ref on the elements of a plain array; plain use before and after the threads.
// RACE atomic-plain - a b
// MAY-MISS shared: who had the page first did so alone
// LIMIT nodebug: the plain load is of a word that only atomic instructions write
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "race.h"

int main() {
  std::vector<long> sums(4, 1);
  std::vector<std::thread> threads;
  for (int me = 0; me < 3; me++) {
    threads.emplace_back([&, me] {
      if (me == 1 && sums[0] < 0) return;  // [b]
      for (int i = 0; i < 12; i++) {
        std::atomic_ref<long> cell(sums[(me + i) % 4]);
        cell.fetch_add(1, std::memory_order_relaxed);  // [a]
      }
    });
  }
  for (auto& thread : threads) thread.join();
  Check(std::accumulate(sums.begin(), sums.end(), 0L) == 40);
  return Done();
}
