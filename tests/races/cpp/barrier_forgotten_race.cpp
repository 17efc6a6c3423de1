// Two threads average neighbours in a row, each its half; in one round of many neither waits for
// the other. The barrier's count of those who wait, which both change in each round, orders
// nothing.
// RACE read-write global:cells cell cell
// BUILD O2 clang-O2
// MAY-MISS shared: the round is over before the page is shared
// MAY-MISS write-shared: the round is over before the page is shared
#include <barrier>
#include <thread>

#include "race.h"

constexpr int kCells = 32, kRounds = 60, kForgotten = 50;

double cells[2][kCells];
std::barrier barrier(2);

void Average(int first, int last) {
  for (int round = 0; round < kRounds; ++round) {
    const double* const from = cells[round % 2];
    double* const to = cells[1 - round % 2];
    for (int i = first; i < last; ++i) to[i] = (from[i - 1] + from[i + 1]) / 2;  // [cell]
    if (round != kForgotten) barrier.arrive_and_wait();
  }
}

int main() {
  cells[0][kCells / 2] = 100;
  std::thread first(Average, 1, kCells / 2);
  std::thread second(Average, kCells / 2, kCells - 1);
  first.join();
  second.join();
  return Done();
}
