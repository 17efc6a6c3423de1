// io_uring set up with bare system calls: a nop and a write through rings in shared memory.
#include <linux/io_uring.h>

#include "guest.h"

int main(void) {
  struct io_uring_params parameters;
  memset(&parameters, 0, sizeof(parameters));
  const int ring = (int)syscall(SYS_io_uring_setup, 8, &parameters);
  if (ring < 0) Skip("no io_uring");
  const size_t submission_size = parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned);
  const size_t completion_size =
      parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
  char* submission = mmap(NULL, submission_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                          ring, IORING_OFF_SQ_RING);
  char* completion = mmap(NULL, completion_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                          ring, IORING_OFF_CQ_RING);
  struct io_uring_sqe* entries =
      mmap(NULL, parameters.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
  Fact(submission != MAP_FAILED && completion != MAP_FAILED && entries != MAP_FAILED,
       "rings mapped");
  int ends[2];
  if (pipe(ends) != 0) return 1;
  unsigned* tail = (unsigned*)(void*)(submission + parameters.sq_off.tail);
  unsigned* array = (unsigned*)(void*)(submission + parameters.sq_off.array);
  unsigned* head = (unsigned*)(void*)(completion + parameters.cq_off.head);
  struct io_uring_cqe* completions =
      (struct io_uring_cqe*)(void*)(completion + parameters.cq_off.cqes);
  for (unsigned i = 0; i < 2; ++i) {
    struct io_uring_sqe* entry = &entries[i];
    memset(entry, 0, sizeof(*entry));
    entry->user_data = 100 + i;
    if (i == 0) {
      entry->opcode = IORING_OP_NOP;
    } else {
      entry->opcode = IORING_OP_WRITE;
      entry->fd = ends[1];
      entry->addr = (uint64_t)(uintptr_t) "ring";
      entry->len = 4;
    }
    array[i] = i;
    __atomic_store_n(tail, i + 1, __ATOMIC_RELEASE);
    Fact(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1,
         "submitted");
    const struct io_uring_cqe* done = &completions[i];
    Fact(done->user_data == 100 + i && done->res == (i == 0 ? 0 : 4),
         i == 0 ? "nop completed" : "write completed");
    __atomic_store_n(head, i + 1, __ATOMIC_RELEASE);
  }
  char text[4];
  Fact(read(ends[0], text, 4) == 4 && memcmp(text, "ring", 4) == 0, "written");
  return Done();
}
