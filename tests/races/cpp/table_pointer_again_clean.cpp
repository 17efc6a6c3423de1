// A class that stops and joins its thread in its own destructor. That begins with a store of the
// pointer to its table of virtual functions, which is there already: the compiler's, and no write.
// CLEAN
// BUILD O0 O2 clang-O0 clang-O2 fixed stripped
#include <atomic>
#include <thread>

#include "race.h"

struct Stage {
  virtual void Step() = 0;
  virtual ~Stage() = default;
};

struct Listener {
  virtual void Hear() = 0;
  virtual ~Listener() = default;
};

struct Runner {
  std::atomic<bool> stop{false};
  std::thread thread;

  template <class Round>
  void Start(Round round) {
    thread = std::thread([this, round] {
      do {
        round();
      } while (!stop);
    });
  }
  void Stop() {
    stop = true;
    thread.join();
  }
};

struct Worker final : Stage {
  Runner runner;
  int steps = 0;

  void Start() {
    Stage* const stage = this;
    runner.Start([stage] { stage->Step(); });
  }
  void Step() override { ++steps; }
  ~Worker() override { runner.Stop(); }
};

// Two pointers, side by side: -O2 stores them at once.
struct Server final : Stage, Listener {
  Runner runner;
  int steps = 0;
  int heard = 0;

  void Start() {
    Stage* const stage = this;
    Listener* const listener = this;
    runner.Start([stage, listener] {
      stage->Step();
      listener->Hear();
    });
  }
  void Step() override { ++steps; }
  void Hear() override { ++heard; }
  ~Server() override { runner.Stop(); }
};

template <class Kind>
__attribute__((noinline)) void RunInHeap() {
  Kind* const object = new Kind;
  object->Start();
  Escape(object);
  delete object;
}

template <class Kind>
__attribute__((noinline)) void RunOnStack() {
  Kind object;
  object.Start();
  Escape(&object);
}

int main() {
  RunInHeap<Worker>();
  RunInHeap<Server>();
  RunOnStack<Worker>();
  RunOnStack<Server>();
  return Done();
}
