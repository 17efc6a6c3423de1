// As repeated_loads_clean, but what was published is written once more.
// OPTIONS --repeats-after=0
// TAGS fast
// RACE read-write heap:16 read late
#include "repeated_loads.h"

enum { kRounds = 30, kLoads = 20 };

struct Object {
  long round, value;
};

static _Alignas(64) void* published;
static _Alignas(64) int loads;
static long sum;

static void* Reader(void* argument) {
  const struct Object* seen = NULL;
  do {
    const struct Object* object = LoadAgain(&published);
    __atomic_add_fetch(&loads, 1, __ATOMIC_RELAXED);
    if (object == seen) continue;
    seen = object;
    sum += seen->value;  // [read]
  } while (seen == NULL || seen->round != kRounds);
  return argument;
}

static void* Writer(void* argument) {
  for (int round = 1; round <= kRounds; ++round) {
    struct Object* object = malloc(sizeof *object);
    object->round = round;
    Exchange(&published, object);
    object->value = round;  // [late]
    if (round == kRounds) break;
    while (__atomic_load_n(&loads, __ATOMIC_RELAXED) < round * kLoads) usleep(100);
  }
  return argument;
}

int main(void) {
  RunTwo(Reader, Writer);
  return Done();
}
