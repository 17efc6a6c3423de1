// An io_uring by system calls alone, with room for one request at a time.
#ifndef TRAPLINE_TESTS_RACES_SYSTEM_RING_H_
#define TRAPLINE_TESTS_RACES_SYSTEM_RING_H_

#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>

#include "race.h"

struct Ring {
  int descriptor;  // less than 0: the kernel has no io_uring
  struct io_uring_sqe* request;
  unsigned *tail, *array;
};

static char* MapRing(int descriptor, size_t size, off_t what) {
  void* const mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, what);
  Check(mapped != MAP_FAILED);
  return mapped;
}

static struct Ring MakeRing(void) {
  struct io_uring_params parameters;
  memset(&parameters, 0, sizeof parameters);
  struct Ring ring = {(int)syscall(SYS_io_uring_setup, 4, &parameters), NULL, NULL, NULL};
  if (ring.descriptor < 0) return ring;
  char* const queue =
      MapRing(ring.descriptor, parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned),
              IORING_OFF_SQ_RING);
  ring.request = (void*)MapRing(
      ring.descriptor, parameters.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
  ring.tail = (unsigned*)(queue + parameters.sq_off.tail);
  ring.array = (unsigned*)(queue + parameters.sq_off.array);
  return ring;
}

// Hands the request in, which is the first one, and waits for so many completions.
static void Submit(const struct Ring* ring, unsigned completions) {
  ring->array[0] = 0;
  __atomic_store_n(ring->tail, 1, __ATOMIC_RELEASE);
  Check(syscall(SYS_io_uring_enter, ring->descriptor, 1, completions,
                completions != 0 ? IORING_ENTER_GETEVENTS : 0, NULL, 0) == 1);
}

// Of one byte.
static void Prepare(const struct Ring* ring, int operation, int descriptor, char* byte) {
  ring->request->opcode = (unsigned char)operation;
  ring->request->fd = descriptor;
  ring->request->addr = (unsigned long)byte;
  ring->request->len = 1;
}

#endif  // TRAPLINE_TESTS_RACES_SYSTEM_RING_H_
