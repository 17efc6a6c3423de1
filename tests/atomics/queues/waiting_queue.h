// A bounded queue for many, after Vyukov, whose callers sleep in atomic::wait.
#include <atomic>
#include <vector>

#include "race.h"
#include "run_threads.h"

template <typename T>
class Queue {
 public:
  explicit Queue(size_t size) : cells_(size) {
    for (size_t i = 0; i < size; i++) cells_[i].turn.store(i, std::memory_order_relaxed);
  }
  void Push(T value) {
    const size_t ticket = tail_.fetch_add(1, std::memory_order_relaxed);
    Cell& cell = cells_[ticket % cells_.size()];
    size_t turn;
    while ((turn = cell.turn.load(std::memory_order_acquire)) != ticket)
      cell.turn.wait(turn, std::memory_order_relaxed);
    cell.value = value;
    cell.turn.store(ticket + 1, std::memory_order_release);
    cell.turn.notify_all();
  }
  T Pop() {
    const size_t ticket = head_.fetch_add(1, std::memory_order_relaxed);
    Cell& cell = cells_[ticket % cells_.size()];
    size_t turn;
    while ((turn = cell.turn.load(std::memory_order_acquire)) != ticket + 1)
      cell.turn.wait(turn, std::memory_order_relaxed);
    T value = cell.value;
    cell.turn.store(ticket + cells_.size(), std::memory_order_release);
    cell.turn.notify_all();
    return value;
  }

 private:
  struct Cell {
    std::atomic<size_t> turn;
    T value;
  };
  std::vector<Cell> cells_;
  std::atomic<size_t> head_{0}, tail_{0};
};

static Queue<int*> queue(4);

// Two threads give new items, which `give` pushes, two pop them and have `take` use them.
template <typename Give, typename Take>
int RunQueue(Give give, Take take) {
  RunNumbered(4, [=](int me) {
    for (int i = 0; i < 12; i++) {
      if (me % 2 == 0) {
        give(new int(i));
      } else {
        take(queue.Pop());
      }
    }
  });
  return Done();
}
