// Left-right: two instances, readers count themselves in, the writer waits for them.
// CLEAN
#include "left_right.h"

int main() {
  return RunReaders(
      [] {
        auto& mine = Enter();
        Use(data[side.load()]);
        Leave(mine);
      },
      [](long& instance) { instance++; });
}
