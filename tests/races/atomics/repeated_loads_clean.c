// Who sees what was published, by a load that is a repeat, sees what was done before, too.
// OPTIONS --repeats-after=0
// TAGS fast
// CLEAN
#include "repeated_loads.h"

static long sum;

static void BeforePublishing(struct Object* object) { object->value = object->round; }
static void AfterPublishing(struct Object* object) { (void)object; }
static void UseObject(const struct Object* object) { sum += object->value; }

int main(void) {
  RunTwo(Reader, Writer);
  return sum >= kRounds ? Done() : 1;
}
