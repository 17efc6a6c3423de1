// A queue lock: every waiter spins on its predecessor's word.
#include <atomic>

#include "race.h"

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
