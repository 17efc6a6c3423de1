/* Built with ThreadSanitizer, whose library stands in front of much the same functions. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int sum;

static void* Add(void* argument) {
  pthread_mutex_lock(&mutex);
  ++sum;
  pthread_mutex_unlock(&mutex);
  return argument;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, Add, NULL);
  Add(NULL);
  pthread_join(thread, NULL);
  char* copy = strdup("text");
  copy = realloc(copy, 100);
  printf("%s %d\n", copy, sum);
  free(copy);
  return 0;
}
