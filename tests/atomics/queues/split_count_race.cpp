// A stack with split reference counts: nodes are filled in after they were pushed.
// ONE-OF any - a b
// ONE-OF any - a c
// ALSO any a a
// FLAGS -mcx16 -Wno-unknown-warning-option -Wno-atomic-alignment
// LINK -latomic
// MAY-MISS shared: who had the page first did so alone
#include "split_count.h"

int main() {
  return RunStack(
      [](Node* node) {
        Push(node);
        node->value = 1;  // [a]
      },
      [](Node* node) {
        Use(node->value);  // [b]
      },
      [](Node* node) {
        delete node;  // [c]
      });
}
