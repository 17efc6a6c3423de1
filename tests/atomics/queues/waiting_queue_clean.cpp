// A bounded queue hands items over: they are not used after they were pushed.
// CLEAN
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include "waiting_queue.h"

int main() {
  return RunQueue([](int* item) { queue.Push(item); }, [](int* item) { *item += 1; });
}
