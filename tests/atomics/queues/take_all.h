// Linux's llist: pushes by compare-and-swap, one exchange takes them all.
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

// The program's: fills a new node in and pushes it; uses one that was taken.
static void Give(Node* node);
static void Take(const Node* node);

static void* Gives(void* argument) {
  for (int i = 0; i < 10; i++) Give(malloc(sizeof(Node)));
  return argument;
}

static void* Takes(void* argument) {
  int left = 10;
  while (left) {
    Node* node = __atomic_exchange_n(&head, NULL, __ATOMIC_ACQUIRE);
    if (!node) usleep(100);
    for (; node; node = node->next, left--) Take(node);
  }
  return argument;
}

static int RunStack(void) {
  RunTwo(Gives, Takes);
  return Done();
}
