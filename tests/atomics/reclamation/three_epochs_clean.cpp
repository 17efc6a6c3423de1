// Epochs: objects are freed two epochs after they were unlinked.
// CLEAN
#include "three_epochs.h"

int main() {
  return RunEpochs(
      [](Local& local) {
        Enter(local);
        Use(root.load(std::memory_order_acquire)->value);
        Leave(local);
      },
      [](Node* old) { delete old; });
}
