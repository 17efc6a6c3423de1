// Hazard pointers, but readers go on reading after they have cleared theirs.
// RACE any - r w
// MAY-MISS shared: who had the page first did so alone
#include "hazard_list.h"

int main() {
  return RunList(
      [](Hazard& hazard) {
        const Node* const node = Protect(hazard);
        Clear(hazard);
        Use(node->value);  // [r]
      },
      [](Node* node) {
        node->value = -1;  // [w]
      });
}
