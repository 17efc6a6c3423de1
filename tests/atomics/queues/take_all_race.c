// A stack that is taken whole: nodes are filled in after they were pushed.
// RACE any heap a b
// MAY-MISS shared: who had the page first did so alone
#include "take_all.h"

static void Give(Node* node) {
  Push(node);
  node->value = 1;  // [a]
}

static void Take(const Node* node) {
  Use(node->value);  // [b]
}

int main(void) { return RunStack(); }
