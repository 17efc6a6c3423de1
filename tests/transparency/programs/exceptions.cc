// Exceptions through many frames, from threads, and out of a thread by cancellation.
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

struct Trace {
  ~Trace() { ++unwound; }
  static thread_local int unwound;
};
thread_local int Trace::unwound = 0;

int Deep(int n) {
  Trace trace;
  if (n == 0) throw std::runtime_error("bottom");
  return Deep(n - 1) + 1;
}

void* Sleeper(void*) {
  Trace trace;
  for (;;) pause();
}

int main() {
  int caught = 0;
  for (int i = 0; i < 1000; ++i) {
    try {
      Deep(i % 50);
    } catch (const std::exception& error) {
      caught += std::string(error.what()) == "bottom";
    }
  }
  std::printf("caught %d unwound %d\n", caught, Trace::unwound);
  std::exception_ptr carried;
  std::thread([&] {
    try {
      Deep(3);
    } catch (...) {
      carried = std::current_exception();
    }
  }).join();
  try {
    std::rethrow_exception(carried);
  } catch (const std::exception& error) {
    std::printf("from thread: %s\n", error.what());
  }
  pthread_t thread;
  pthread_create(&thread, nullptr, Sleeper, nullptr);
  usleep(20000);
  pthread_cancel(thread);
  void* result = nullptr;
  pthread_join(thread, &result);
  std::printf("cancelled %d\n", result == PTHREAD_CANCELED);
}
