// A stack whose head is a pointer and a count, changed by lock cmpxchg16b.
// CLEAN
// FLAGS -mcx16
#include <stdint.h>

#include "race.h"

struct Node {
  struct Node* next;
  int value;
};
union Head {
  struct {
    struct Node* top;
    uint64_t count;
  } parts;
  unsigned __int128 whole;
};
static union Head head __attribute__((aligned(16)));

static int Swap(union Head expected, union Head wanted) {
  return __sync_bool_compare_and_swap(&head.whole, expected.whole, wanted.whole);
}

static void Push(struct Node* node) {
  union Head old, changed;
  do {
    old.whole = __sync_val_compare_and_swap(&head.whole, 0, 0);
    node->next = old.parts.top;
    changed.parts.top = node;
    changed.parts.count = old.parts.count + 1;
  } while (!Swap(old, changed));
}

static struct Node* Pop(void) {
  union Head old, changed;
  do {
    old.whole = __sync_val_compare_and_swap(&head.whole, 0, 0);
    if (old.parts.top == NULL) return NULL;
    changed.parts.top = NULL;  // takes all
    changed.parts.count = old.parts.count + 1;
  } while (!Swap(old, changed));
  return old.parts.top;
}

static void* Pushes(void* argument) {
  for (int i = 0; i < 3; i++) {
    struct Node* const node = malloc(sizeof *node);
    node->value = 1;
    Push(node);
  }
  return argument;
}

static void* Pops(void* argument) {
  for (int sum = 0; sum < 3;) {
    for (struct Node* node = Pop(); node != NULL;) {
      struct Node* const next = node->next;
      sum += node->value;
      free(node);
      node = next;
    }
  }
  return argument;
}

int main(void) {
  RunTwo(Pushes, Pops);
  return Done();
}
