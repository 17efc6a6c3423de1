// Time does not go back from one thread to the next.
#include "guest.h"

static int64_t latest;
static int backwards;

static void* Watch(void* argument) {
  for (int i = 0; i < 20000; ++i) {
    const int64_t seen = __atomic_load_n(&latest, __ATOMIC_SEQ_CST);
    const int64_t now = NowNs();
    if (now < seen) Add(&backwards, 1);
    int64_t old = seen;
    while (old < now && !__atomic_compare_exchange_n(&latest, &old, now, false, __ATOMIC_SEQ_CST,
                                                     __ATOMIC_SEQ_CST)) {
    }
  }
  return argument;
}

int main(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) threads[i] = Start(Watch, NULL);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  Fact(backwards == 0, "80000 readings in 4 threads, none before one seen earlier");
  return Done();
}
