// A sorted list with marked pointers: nodes are filled in before they are inserted.
// CLEAN
#include "marked_list.h"

int main() {
  return RunList(
      [](Node* node) {
        node->payload = 2;
        Insert(node);
      },
      [](Node* node) { Use(node->payload); });
}
