// std::jthread joins in its destructor; a stop token hands over.
// CLEAN
#include <stop_token>
#include <thread>

#include "race.h"

int value;
int done;

int main() {
  {
    std::jthread thread([](std::stop_token stop) {
      while (!stop.stop_requested()) usleep(1000);
      value++;
      done = 1;
    });
    value = 1;
    thread.request_stop();
  }
  return value + done == 3 ? Done() : 1;
}
