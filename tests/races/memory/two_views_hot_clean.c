// CLEAN
// A thread has memory to itself and works there long enough not to be watched; then another one
// maps the same memory, and gets what the first one publishes.
#include <stdatomic.h>
#include <sys/mman.h>

#include "race.h"

enum { kRoom = 2048, kFills = 400 };
typedef struct {
  atomic_int ready;
  int value;
  char room[kRoom];
} Shared;

static int file;
static atomic_int worked, mapped;  // order nothing

static Shared* Map(void) {
  void* const at = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  Check(at != MAP_FAILED);
  return at;
}

static void Await(atomic_int* flag) {
  while (!atomic_load_explicit(flag, memory_order_relaxed)) usleep(100);
}

// Each fill is as much as some hundred accesses.
static void Work(Shared* view) {
  for (int i = 0; i < kFills; i++) {
    char* to = view->room;
    unsigned long count = kRoom;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(i) : "memory");
  }
}

static void* Giver(void* argument) {
  Shared* const view = Map();
  Work(view);
  atomic_store_explicit(&worked, 1, memory_order_relaxed);
  Await(&mapped);
  view->value = 1;
  Work(view);
  atomic_store_explicit(&view->ready, 1, memory_order_release);
  return argument;
}

static void* Taker(void* argument) {
  Await(&worked);
  Shared* const view = Map();
  atomic_store_explicit(&mapped, 1, memory_order_relaxed);
  while (!atomic_load_explicit(&view->ready, memory_order_acquire)) usleep(100);
  view->value = 2;
  return argument;
}

int main(void) {
  file = memfd_create("x", 0);
  Check(ftruncate(file, sizeof(Shared)) == 0);
  RunTwo(Giver, Taker);
  return Done();
}
