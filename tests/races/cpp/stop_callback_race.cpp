// std::jthread, a stop token and a callback that runs in the thread that asks to stop.
// RACE any global:value a b
// MAY-MISS shared: who had the page first did so alone
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "announce.h"
#include "race.h"

int value;

int main() {
  const rlim_t before = Announced();
  {
    std::jthread thread([](std::stop_token token) {
      std::stop_callback callback(token, [] { value++; });  // [a]
      value = 1;                                            // [b]
      Announce();                                           // its callback is there
      while (!token.stop_requested()) std::this_thread::yield();
    });
    AwaitAnnouncement(before);
    thread.request_stop();
  }
  value++;
  return Done();
}
