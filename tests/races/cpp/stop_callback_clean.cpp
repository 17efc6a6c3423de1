// std::jthread, a stop token and a callback that runs in the thread that asks to stop.
// CLEAN
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "race.h"

int value;

int main() {
  {
    std::jthread thread([](std::stop_token token) {
      value = 1;
      {
        std::stop_callback callback(token, [] { value++; });
        while (!token.stop_requested()) std::this_thread::yield();
      }
      value++;
    });
    usleep(1000);
    thread.request_stop();
  }
  value++;
  return Done();
}
