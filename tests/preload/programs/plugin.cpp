// The C++ part of plugin_host.c: brings the C++ library in with it.
#include <cstdio>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Counter {
  Counter() { std::puts("made once"); }
  int value = 0;
  std::mutex mutex;
};

Counter& TheCounter() {
  static Counter counter;
  return counter;
}

struct alignas(256) Wide {
  int value = 1;
};

}  // namespace

extern "C" int plugin_run() {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([i] {
      std::lock_guard lock(TheCounter().mutex);
      TheCounter().value += i;
    });
  for (std::thread& thread : threads) thread.join();
  auto wide = std::make_unique<Wide[]>(3);
  try {
    throw std::runtime_error(std::string(100, 'x'));
  } catch (const std::runtime_error& error) {
    return TheCounter().value + static_cast<int>(std::string(error.what()).size()) + wide[2].value;
  }
}
