// The thread that drops the last reference frees what both have written.
// CLEAN
#include "race.h"

struct Object {
  int references;
  int values[2];
};

static struct Object* object;

static void Drop(void) {
  if (__atomic_sub_fetch(&object->references, 1, __ATOMIC_ACQ_REL) == 0) {
    object->values[0] = 0;
    object->values[1] = 0;
    free(object);
  }
}

static void* First(void* argument) {
  object->values[0] = 1;
  Drop();
  return argument;
}

static void* Second(void* argument) {
  object->values[1] = 1;
  Drop();
  return argument;
}

int main(void) {
  object = (struct Object*)calloc(1, sizeof(*object));
  object->references = 2;
  RunTwo(First, Second);
  return Done();
}
