// A stack whose head is a pointer and a count, changed by lock cmpxchg16b. For programs with
// -mcx16.
#ifndef TRAPLINE_TESTS_RACES_INSTRUCTIONS_WIDE_STACK_H_
#define TRAPLINE_TESTS_RACES_INSTRUCTIONS_WIDE_STACK_H_

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

// A new node, of value 1.
static void Push(void) {
  struct Node* const node = malloc(sizeof *node);
  node->value = 1;
  union Head old, changed;
  do {
    old.whole = __sync_val_compare_and_swap(&head.whole, 0, 0);
    node->next = old.parts.top;
    changed.parts.top = node;
    changed.parts.count = old.parts.count + 1;
  } while (!Swap(old, changed));
}

// All nodes; null: there is none.
static struct Node* TakeAll(void) {
  union Head old, changed;
  do {
    old.whole = __sync_val_compare_and_swap(&head.whole, 0, 0);
    if (old.parts.top == NULL) return NULL;
    changed.parts.top = NULL;
    changed.parts.count = old.parts.count + 1;
  } while (!Swap(old, changed));
  return old.parts.top;
}

// Takes and frees until the values amount to `wanted`.
static void TakeUntil(int wanted) {
  for (int sum = 0; sum < wanted;) {
    for (struct Node* node = TakeAll(); node != NULL;) {
      struct Node* const next = node->next;
      sum += node->value;
      free(node);
      node = next;
    }
  }
}

#endif  // TRAPLINE_TESTS_RACES_INSTRUCTIONS_WIDE_STACK_H_
