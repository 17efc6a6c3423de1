// As repeated_loads_clean, but what was published is written once more.
// OPTIONS --repeats-after=0
// TAGS fast
// RACE read-write heap:16 read late
#include "repeated_loads.h"

static long sum;

static void BeforePublishing(struct Object* object) { (void)object; }
static void AfterPublishing(struct Object* object) {
  object->value = object->round;  // [late]
}
static void UseObject(const struct Object* object) {
  sum += object->value;  // [read]
}

int main(void) {
  RunTwo(Reader, Writer);
  return Done();
}
