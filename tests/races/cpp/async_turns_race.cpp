// Tasks of turns that are long enough for memory to settle, while another thread lives all along:
// their futures come and go in the same memory. What one of them releases there, once it is ready,
// says nothing to the others.
// RACE any global:total sum sum
// SECONDS 60
#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "race.h"

static long total;

namespace {

constexpr int kTasks = 3, kTurns = 16;
constexpr long kValues = 300000;

double* from = new double[kValues]();
double* to = new double[kValues]();

void Smooth(int task, bool is_late) {
  const long begin = kValues * task / kTasks, end = kValues * (task + 1) / kTasks;
  for (long i = std::max(begin, 1L); i < std::min(end, kValues - 1); ++i)
    to[i] = (from[i - 1] + from[i] + from[i + 1]) / 3;
  if (is_late) total += begin;  // [sum]
}

}  // namespace

int main() {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  for (int turn = 0; turn < kTurns; ++turn) {
    std::vector<std::future<void>> tasks;
    for (int i = 0; i < kTasks; ++i)
      tasks.push_back(std::async(std::launch::async, Smooth, i, turn + 4 >= kTurns));
    for (auto& task : tasks) task.get();
    std::swap(from, to);
  }
  stop = true;
  other.join();
  Use(total);
  return Done();
}
