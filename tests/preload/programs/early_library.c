/* Calls everything at the wrong time: from the resolver of an indirect function, which runs while
 * libraries are being relocated, and from a constructor that runs before the preload library's. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int early_answer(void);
const char* early_story(void);

static int Answer(void) { return 42; }

static char resolver_result[16];

/* Not in relocated memory, so that the resolver can use it. */
__attribute__((used)) static int (*ResolveAnswer(void))(void) {
  char text[16];
  memset(text, 'x', sizeof(text));
  memcpy(text, "early", 6);
  memmove(text + 1, text, 6);
  if (strlen(text) == 6 && memcmp(text, "eearly", 6) == 0 && strcmp(text, "eearly") == 0 &&
      strncmp(text, "eeaXX", 3) == 0)
    memcpy(resolver_result, "resolved", 9);
  return Answer;
}

int early_answer(void) __attribute__((ifunc("ResolveAnswer")));

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char story[128];

static void Once(void) { strcat(story, " once"); }

static void* InThread(void* argument) {
  pthread_mutex_lock(&mutex);
  strcat(argument, " thread");
  pthread_mutex_unlock(&mutex);
  return NULL;
}

__attribute__((constructor(101))) static void Construct(void) {
  char* block = malloc(32);
  snprintf(block, 32, "%s %d", "constructed", 1);
  strcpy(story, block);
  block = realloc(block, 4096);
  free(block);
  pthread_t thread;
  pthread_create(&thread, NULL, InThread, story);
  pthread_join(thread, NULL);
  pthread_once(&once, Once);
}

const char* early_story(void) {
  strcat(story, " ");
  return strcat(story, resolver_result);
}
