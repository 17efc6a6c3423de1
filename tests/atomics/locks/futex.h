// The kernel's part of locks in one process.
#include <linux/futex.h>
#include <stdatomic.h>

#include "race.h"

static int Futex(atomic_int* word, int operation, int argument) {
  return (int)syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, argument, NULL, NULL, 0);
}
