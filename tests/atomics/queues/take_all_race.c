// Linux's llist: pushes by compare-and-swap, one exchange takes them all.
// RACE any heap a b
// MAY-MISS shared: who had the page first did so alone
#include "race.h"

typedef struct Node {
  struct Node* next;
  int value;
} Node;

static Node* head;

static void Push(Node* node) {
  Node* first = __atomic_load_n(&head, __ATOMIC_RELAXED);
  do {
    node->next = first;
  } while (
      !__atomic_compare_exchange_n(&head, &first, node, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static void* Adds(void* argument) {
  for (int i = 0; i < 10; i++) {
    Node* const node = malloc(sizeof *node);
    Push(node);
    node->value = i;  // [a]
  }
  return argument;
}

static void* Takes(void* argument) {
  int left = 10;
  long sum = 0;
  while (left) {
    Node* node = __atomic_exchange_n(&head, NULL, __ATOMIC_ACQUIRE);
    if (!node) usleep(100);
    for (; node; node = node->next, left--) sum += node->value;  // [b]
  }
  Use(sum);
  return argument;
}

int main(void) {
  RunTwo(Adds, Takes);
  return Done();
}
