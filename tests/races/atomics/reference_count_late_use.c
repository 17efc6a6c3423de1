// A thread uses the object after it dropped its reference.
// RACE any heap:8 a b
// MAY-MISS shared: each place runs once
#include "race.h"

struct Object {
  int references;
  int value;
};

static struct Object* object;

static void* Late(void* argument) {
  __atomic_sub_fetch(&object->references, 1, __ATOMIC_ACQ_REL);
  object->value = 1;  // [a]
  return argument;
}

int main(void) {
  object = (struct Object*)calloc(1, sizeof(*object));
  object->references = 2;
  const pthread_t late = Start(Late, NULL);
  __atomic_sub_fetch(&object->references, 1, __ATOMIC_ACQ_REL);
  object->value = 2;  // [b]
  Join(late);
  free(object);
  return Done();
}
