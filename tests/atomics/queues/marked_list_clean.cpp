// A sorted list with marked pointers: nodes are filled in before they are inserted.
// CLEAN
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include "marked_list.h"

int main() {
  return RunList(
      [](Node* node) {
        node->payload = 2;
        Insert(node);
      },
      [](Node* node) { Use(node->payload); });
}
