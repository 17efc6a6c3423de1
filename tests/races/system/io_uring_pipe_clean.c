// A pipe that is read, or written, by way of io_uring orders as any other. Where the kernel has no
// io_uring, nothing is shown.
// CLEAN
// TSAN-DIFFERS io_uring is not intercepted
#include "ring.h"

static int to_ring[2], from_ring[2], value;

static void* Other(void* argument) {
  char byte = 0;
  usleep(50000);  // the request is under way by then
  value = 1;
  Check(write(to_ring[1], &byte, 1) == 1);
  Check(read(from_ring[0], &byte, 1) == 1);
  value++;
  return argument;
}

int main(void) {
  const struct Ring in = MakeRing(), out = MakeRing();
  if (in.descriptor < 0 || out.descriptor < 0) return Done();
  Check(pipe(to_ring) == 0 && pipe(from_ring) == 0);
  char byte = 0;
  // Before there is another thread.
  Prepare(&in, IORING_OP_READ, to_ring[0], &byte);
  Submit(&in, 0);
  const pthread_t other = Start(Other, NULL);
  Check(syscall(SYS_io_uring_enter, in.descriptor, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) >= 0);
  value++;
  Prepare(&out, IORING_OP_WRITE, from_ring[1], &byte);
  Submit(&out, 0);
  Join(other);
  return value == 3 ? Done() : 1;
}
