// A thread polls a stack whose head is changed by lock cmpxchg16b for so long that it does so
// natively, and takes what another one pushes now and then.
// CLEAN
// FLAGS -mcx16
#include <stdint.h>
#include <unistd.h>

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

enum { kNodes = 40 };

static union Head Load(void) {
  union Head now;
  now.whole = __sync_val_compare_and_swap(&head.whole, 0, 0);
  return now;
}

static int Swap(union Head expected, union Head wanted) {
  return __sync_bool_compare_and_swap(&head.whole, expected.whole, wanted.whole);
}

static void* Pushes(void* argument) {
  for (int i = 0; i < kNodes; i++) {
    usleep(2000);
    struct Node* const node = malloc(sizeof *node);
    node->value = 1;
    union Head old, changed;
    do {
      old = Load();
      node->next = old.parts.top;
      changed.parts.top = node;
      changed.parts.count = old.parts.count + 1;
    } while (!Swap(old, changed));
  }
  return argument;
}

static void* Polls(void* argument) {
  for (int sum = 0; sum < kNodes;) {
    union Head old, changed;
    do {
      old = Load();
      changed.parts.top = NULL;  // takes all
      changed.parts.count = old.parts.count + 1;
    } while (old.parts.top != NULL && !Swap(old, changed));
    for (struct Node* node = old.parts.top; node != NULL;) {
      struct Node* const next = node->next;
      sum += node->value;
      free(node);
      node = next;
    }
  }
  return argument;
}

int main(void) {
  RunTwo(Pushes, Polls);
  return Done();
}
