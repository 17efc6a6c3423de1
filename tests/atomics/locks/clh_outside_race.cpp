// The same queue lock, and a write after it was given back.
// RACE write-write global:value a a
// MAY-MISS shared: each place runs once in a thread
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's: the nodes are reported besides
#include <atomic>
#include <thread>

#include "race.h"

int value;
static std::atomic<int> nodes[3];
static std::atomic<std::atomic<int>*> tail{&nodes[2]};
static thread_local std::atomic<int>*own, *before;
static std::atomic<int> given;

static void Lock() {
  if (own == nullptr) own = &nodes[given.fetch_add(1)];
  own->store(1, std::memory_order_relaxed);
  before = tail.exchange(own, std::memory_order_acq_rel);
  while (before->load(std::memory_order_acquire) != 0) usleep(100);
}

static void Unlock() {
  std::atomic<int>* const freed = own;
  own = before;
  freed->store(0, std::memory_order_release);
}

static void Works() {
  for (int i = 0; i < 1; i++) {
    Lock();
    Unlock();
    value = 1;  // [a]
  }
}

int main() {
  std::thread first(Works);
  std::thread second(Works);
  first.join();
  second.join();
  return Done();
}
