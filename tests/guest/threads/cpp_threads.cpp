// std::thread, std::async, std::call_once, exceptions across threads, thread_local with
// destructors.
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "guest.h"

namespace {

std::atomic<int> destroyed{0};

struct Tracked {
  std::string text = "a text longer than the small buffer of a string";
  ~Tracked() { destroyed += static_cast<int>(text.size() > 15); }
};
thread_local Tracked tracked;

int Throwing(int depth) {
  if (depth == 0) throw std::runtime_error("from the depth");
  return Throwing(depth - 1) + 1;
}

}  // namespace

int main() {
  std::vector<std::thread> threads;
  std::atomic<int> sum{0};
  for (int i = 1; i <= 8; ++i) {
    threads.emplace_back([&sum, i] {
      tracked.text += std::to_string(i);
      sum += i;
    });
  }
  for (auto& thread : threads) thread.join();
  Fact(sum == 36, "8 std::threads");
  Fact(destroyed == 8, "thread_local destructors ran");

  auto future = std::async(std::launch::async, [] { return Throwing(20); });
  std::string message;
  try {
    future.get();
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  Fact(message == "from the depth", "exception carried to another thread");

  std::atomic<int> caught{0};
  threads.clear();
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&caught] {
      for (int j = 0; j < 200; ++j) {
        try {
          Throwing(j % 10);
        } catch (const std::exception&) {
          ++caught;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  Fact(caught == 800, "800 exceptions in 4 threads at once");

  std::promise<int> promise;
  std::thread([&promise] { promise.set_value(11); }).detach();
  Fact(promise.get_future().get() == 11, "promise kept");
  return Done();
}
