// Hazard pointers with a list of retired nodes.
// CLEAN
#include "hazard_list.h"

int main() {
  return RunList(
      [](Hazard& hazard) {
        Use(Protect(hazard)->value);
        Clear(hazard);
      },
      [](Node* node) { node->value = -1; });
}
