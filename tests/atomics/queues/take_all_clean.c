// A stack that is taken whole: nodes are filled in before they are pushed.
// CLEAN
#include "take_all.h"

static void Give(Node* node) {
  node->value = 1;
  Push(node);
}

static void Take(const Node* node) { Use(node->value); }

int main(void) { return RunStack(); }
