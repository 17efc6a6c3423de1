// What is written behind the byte that another thread reads by way of io_uring. Where the kernel
// has no io_uring, a pipe is read as usual.
// RACE write-write global:value late reader
// TSAN-DIFFERS io_uring is not intercepted
#include "ring.h"

static int ends[2], value;

static void* Other(void* argument) {
  char byte = 0;
  Check(write(ends[1], &byte, 1) == 1);
  value = 1;  // [late]
  return argument;
}

int main(void) {
  const struct Ring ring = MakeRing();
  Check(pipe(ends) == 0);
  const pthread_t other = Start(Other, NULL);
  char byte = 0;
  if (ring.descriptor >= 0) {
    Prepare(&ring, IORING_OP_READ, ends[0], &byte);
    Submit(&ring, 1);
  } else {
    Check(read(ends[0], &byte, 1) == 1);
  }
  value = 2;  // [reader]
  Join(other);
  Use(value);
  return Done();
}
