// A stack with split reference counts: nodes are filled in before they are pushed.
// CLEAN
// FLAGS -mcx16 -Wno-unknown-warning-option -Wno-atomic-alignment
// LINK -latomic
#include "split_count.h"

int main() {
  return RunStack(
      [](Node* node) {
        node->value = 1;
        Push(node);
      },
      [](Node* node) { Use(node->value); }, [](Node* node) { delete node; });
}
