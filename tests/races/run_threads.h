// Functions in C++ threads of their own, until all have ended.
#ifndef TRAPLINE_TESTS_RACES_RUN_THREADS_H_
#define TRAPLINE_TESTS_RACES_RUN_THREADS_H_

#include <thread>
#include <vector>

// Each function in a thread.
template <typename... Functions>
void RunThreads(Functions... functions) {
  std::thread threads[] = {std::thread(functions)...};
  for (std::thread& thread : threads) thread.join();
}

// function(0), function(1), ..., function(count - 1), each in a thread.
template <typename Function>
void RunNumbered(int count, Function function) {
  std::vector<std::thread> threads;
  for (int me = 0; me < count; me++) threads.emplace_back(function, me);
  for (std::thread& thread : threads) thread.join();
}

#endif  // TRAPLINE_TESTS_RACES_RUN_THREADS_H_
