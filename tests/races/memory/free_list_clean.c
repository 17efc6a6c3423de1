// Blocks pass through a mutex-protected list, are freed by whoever takes them.
// CLEAN
#include "race.h"

struct Node {
  struct Node* next;
  int value;
};
struct Node* list;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* Worker(void* argument) {
  for (int i = 0; i < 4; i++) {
    struct Node* node = (struct Node*)malloc(sizeof(*node));
    node->value = i;
    pthread_mutex_lock(&mutex);
    node->next = list;
    list = node;
    pthread_mutex_unlock(&mutex);
    pthread_mutex_lock(&mutex);
    node = list;
    if (node != NULL) list = node->next;
    pthread_mutex_unlock(&mutex);
    if (node != NULL) {
      Use(node->value);
      free(node);
    }
  }
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  return list == NULL ? Done() : 1;
}
