// request_stop orders what came before it with who sees the request, and with callbacks.
// CLEAN
#include <stop_token>
#include <thread>

#include "race.h"

int value, from_callback;

int main() {
  std::jthread worker([](std::stop_token token) {
    std::stop_callback callback(token, [] { from_callback = 2; });
    while (!token.stop_requested()) usleep(1000);
    value++;
  });
  value = 1;
  worker.request_stop();
  worker.join();
  return value + from_callback == 4 ? Done() : 1;
}
