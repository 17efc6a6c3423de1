#include "guest.h"

static void* Square(void* argument) { return (void*)((intptr_t)argument * (intptr_t)argument); }

int main(void) {
  pthread_t threads[8];
  for (intptr_t i = 0; i < 8; ++i) threads[i] = Start(Square, (void*)i);
  for (intptr_t i = 0; i < 8; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    Fact((intptr_t)result == i * i, "thread %d returned %d", (int)i, (int)(i * i));
  }
  Fact(pthread_join(pthread_self(), NULL) == EDEADLK, "joining oneself is EDEADLK");
  return Done();
}
