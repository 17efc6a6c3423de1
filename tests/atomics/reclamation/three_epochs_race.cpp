// Epochs, but readers go on reading after they have left.
// RACE any heap r w
// MAY-MISS shared: who had the page first did so alone
#include "three_epochs.h"

int main() {
  return RunEpochs(
      [](Local& local) {
        Enter(local);
        Node* const node = root.load(std::memory_order_acquire);
        Leave(local);
        Use(node->value);  // [r]
      },
      [](Node* old) {
        delete old;  // [w]
      });
}
