// A sorted list with marked pointers: nodes are filled in after they were inserted.
// RACE any - a b
// MAY-MISS shared: who had the page first did so alone
// LIMIT clang-O0-nodebug: a plain load that meets an exchange is one of the atomic, and orders too much for a while
#include "marked_list.h"

int main() {
  return RunList(
      [](Node* node) {
        Insert(node);
        node->payload = 2;  // [a]
      },
      [](Node* node) {
        Use(node->payload);  // [b]
      });
}
