#include <linux/futex.h>

#include "guest.h"

static int word;
static int waiting;
static int woken;
static int other_word;

static long Futex(int* address, int operation, int value, const struct timespec* timeout,
                  int* second, int value3) {
  return syscall(SYS_futex, address, operation, value, timeout, second, value3);
}

static void* Wait(void* argument) {
  (void)argument;
  Add(&waiting, 1);
  while (Futex(&word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) != 0 && errno == EINTR) {
  }
  Add(&woken, 1);
  return NULL;
}

int main(void) {
  Fact(Futex(&word, FUTEX_WAIT, 1, NULL, NULL, 0) == -1 && errno == EAGAIN, "other value: EAGAIN");
  const struct timespec soon = {0, 10000000};
  const int64_t start = NowNs();
  Fact(Futex(&word, FUTEX_WAIT, 0, &soon, NULL, 0) == -1 && errno == ETIMEDOUT, "ETIMEDOUT");
  Fact(NowNs() - start >= 10000000, "not before its time");
  Fact(Futex((int*)1, FUTEX_WAIT, 0, NULL, NULL, 0) == -1 && errno == EINVAL, "misaligned: EINVAL");
  Fact(Futex((int*)kPage, FUTEX_WAIT, 0, NULL, NULL, 0) == -1 && errno == EFAULT,
       "unmapped: EFAULT");
  Fact(Futex(&word, 99, 0, NULL, NULL, 0) == -1 && errno == ENOSYS, "unknown operation: ENOSYS");
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) threads[i] = Start(Wait, NULL);
  WaitUntil(&waiting, 4);
  // All four asleep once they can all be moved to the other word.
  long moved = 0;
  for (int i = 0; i < 5000 && moved < 4; ++i) {
    const long now =
        Futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 0, (const struct timespec*)4, &other_word, 0);
    if (now > 0) moved += now;
    SleepMs(1);
  }
  Fact(moved == 4, "4 waiters moved to another futex");
  Fact(Futex(&word, FUTEX_WAKE_PRIVATE, 100, NULL, NULL, 0) == 0, "nobody left on the first");
  Fact(Futex(&other_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1, "one woken");
  WaitUntil(&woken, 1);
  Fact(Futex(&other_word, FUTEX_WAKE_PRIVATE, 100, NULL, NULL, 0) == 3, "three woken");
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  Fact(Load(&woken) == 4, "all awake");
  return Done();
}
