// Michael and Scott's queue: two threads give nodes, one takes them.
// CLEAN
#include "michael_scott.h"

static Node nodes[8];

int main() {
  const auto give = [](int from) {
    for (int i = from; i < from + 4; i++) {
      nodes[i].value = 1;
      Put(&nodes[i]);
    }
  };
  const auto take = [] {
    int sum = 0;
    while (sum < 8) {
      if (const Node* const node = Get()) {
        sum += node->value;
      } else {
        usleep(100);
      }
    }
  };
  RunThreads([=] { give(0); }, [=] { give(4); }, take);
  return Done();
}
