// The last user of a reference-counted object with a mutex of its own frees it.
// CLEAN
#include "race.h"

struct Object {
  pthread_mutex_t mutex;
  int users;
};

static void* User(void* argument) {
  struct Object* object = (struct Object*)argument;
  pthread_mutex_lock(&object->mutex);
  const int left = --object->users;
  pthread_mutex_unlock(&object->mutex);
  if (left == 0) {
    pthread_mutex_destroy(&object->mutex);
    free(object);
  }
  return NULL;
}

int main(void) {
  struct Object* object = (struct Object*)malloc(sizeof(*object));
  pthread_mutex_init(&object->mutex, NULL);
  object->users = 2;
  const pthread_t first = Start(User, object);
  const pthread_t second = Start(User, object);
  Join(first);
  Join(second);
  return Done();
}
