// std::barrier whose members leave one after the other, with a completion.
#include <barrier>

#include "race.h"
#include "run_threads.h"

static int parts[3];

// Member 0 leaves at the first phase, 1 at the second, 2 at the third; until then they set their
// parts and `wait`.
template <typename Completion, typename Wait>
int RunDropping(Completion completion, Wait wait) {
  std::barrier barrier(3, completion);
  RunNumbered(3, [&barrier, wait](int me) {
    for (int i = 0; i < me; i++) {
      parts[me] = i;
      wait(barrier);
    }
    parts[me] = me;
    barrier.arrive_and_drop();
  });
  return Done();
}
