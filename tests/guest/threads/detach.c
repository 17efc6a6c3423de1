#include <semaphore.h>

#include "guest.h"

static sem_t ended;

static void* Post(void* argument) {
  (void)argument;
  sem_post(&ended);
  return NULL;
}

static void* DetachSelf(void* argument) {
  pthread_detach(pthread_self());
  return Post(argument);
}

int main(void) {
  sem_init(&ended, 0, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (int i = 0; i < 100; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, Post, NULL) != 0) Fact(false, "created detached");
    thread = Start(Post, NULL);
    pthread_detach(thread);
    Start(DetachSelf, NULL);
  }
  for (int i = 0; i < 300; ++i) {
    while (sem_wait(&ended) != 0) {
    }
  }
  Fact(true, "300 detached threads ran");
  return Done();
}
