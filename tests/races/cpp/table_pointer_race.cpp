// A class whose base stops and joins the thread: by then the object is of the base, and the thread
// may call a function that is none.
// RACE read-write - a b
// MAY-MISS shared: the destructor's store is made once
#include <atomic>
#include <thread>

#include "race.h"

struct Stage {
  std::atomic<bool> stop{false};
  std::thread thread;

  void Start() {
    thread = std::thread([this] {
      do {
        Step();  // [a]
      } while (!stop);
    });
  }
  virtual void Step() { Use(1); }
  virtual ~Stage() {  // [b]
    stop = true;
    thread.join();
  }
};

struct Worker : Stage {
  int steps = 0;

  void Step() override { ++steps; }
  ~Worker() override { Escape(this); }
};

int main() {
  Stage* const stage = new Worker;
  stage->Start();
  Escape(stage);
  delete stage;
  return Done();
}
