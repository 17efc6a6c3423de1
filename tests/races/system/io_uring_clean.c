// Who waits for a completion comes after who handed in the request. Where the kernel has no
// io_uring, nothing is shown.
// CLEAN
// TSAN-DIFFERS io_uring is not intercepted
#include "ring.h"

static struct Ring ring;
static int value;

static void* Waiter(void* argument) {
  Check(syscall(SYS_io_uring_enter, ring.descriptor, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) >= 0);
  value++;
  return argument;
}

int main(void) {
  ring = MakeRing();
  if (ring.descriptor < 0) return Done();
  const pthread_t waiter = Start(Waiter, NULL);
  value = 1;
  Prepare(&ring, IORING_OP_NOP, -1, NULL);
  Submit(&ring, 0);
  Join(waiter);
  return value == 2 ? Done() : 1;
}
