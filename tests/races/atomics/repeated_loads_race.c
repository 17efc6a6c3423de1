// As repeated_loads_clean, but what was published is written once more. Where the reader's loop
// becomes hot it runs natively, and then the pages that it loses order it: that missed the race in
// 7 of 100 runs.
// OPTIONS --repeats-after=0 --hot-after=1000000000
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
