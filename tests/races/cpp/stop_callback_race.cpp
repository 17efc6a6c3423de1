// std::jthread, a stop token and a callback that runs in the thread that asks to stop.
// RACE any global:value a b
// MAY-MISS shared: who had the page first did so alone
#include <sys/resource.h>

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "race.h"

int value;

// The thread says through a limit of the process that its callback is there, which orders nothing.
rlim_t Limit() {
  rlimit limit;
  Check(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  return limit.rlim_cur;
}

void LowerLimit() {
  rlimit limit;
  Check(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur--;
  Check(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

int main() {
  const rlim_t before = Limit();
  {
    std::jthread thread([](std::stop_token token) {
      std::stop_callback callback(token, [] { value++; });  // [a]
      value = 1;                                            // [b]
      LowerLimit();
      while (!token.stop_requested()) std::this_thread::yield();
    });
    while (Limit() == before) usleep(1000);
    thread.request_stop();
  }
  value++;
  return Done();
}
