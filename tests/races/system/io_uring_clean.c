// Who waits for a completion comes after who handed in the request. Where the kernel has no
// io_uring, nothing is shown.
// CLEAN
// TSAN-DIFFERS io_uring is not intercepted
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>

#include "race.h"

static int ring, value;

static void* Waiter(void* argument) {
  Check(syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) >= 0);
  value++;
  return argument;
}

static char* Map(size_t size, off_t what) {
  void* const mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, what);
  Check(mapped != MAP_FAILED);
  return mapped;
}

int main(void) {
  struct io_uring_params parameters;
  memset(&parameters, 0, sizeof parameters);
  ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
  if (ring < 0) return Done();
  char* const queue =
      Map(parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
  struct io_uring_sqe* const request =
      (void*)Map(parameters.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
  const pthread_t waiter = Start(Waiter, NULL);
  value = 1;
  request->opcode = IORING_OP_NOP;
  *(unsigned*)(queue + parameters.sq_off.array) = 0;
  __atomic_store_n((unsigned*)(queue + parameters.sq_off.tail), 1, __ATOMIC_RELEASE);
  Check(syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) == 1);
  Join(waiter);
  return value == 2 ? Done() : 1;
}
