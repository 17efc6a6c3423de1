// std::jthread, a stop token and a callback that runs in the thread that asks to stop.
// RACE any global:value a b
// MAY-MISS shared: who had the page first did so alone
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "race.h"

int value;

int main() {
  {
    std::jthread thread([](std::stop_token token) {
      std::stop_callback callback(token, [] { value++; });  // [a]
      value = 1;                                            // [b]
      while (!token.stop_requested()) std::this_thread::yield();
    });
    usleep(1000);
    thread.request_stop();
  }
  value++;
  return Done();
}
