// A node is filled in after it was linked.
// RACE read-write global:node a b
// MAY-MISS shared: each place runs once
#include "michael_scott.h"

static Node node;

int main() {
  RunThreads(
      [] {
        Put(&node);
        node.value = 1;  // [a]
      },
      [] {
        Node* taken = nullptr;
        while ((taken = Get()) == nullptr) usleep(100);
        Use(taken->value);  // [b]
      });
  return Done();
}
