#include <linux/membarrier.h>

#include "guest.h"

int main(void) {
  const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  if (commands < 0) Skip("no membarrier");
  bool good = true;
  if (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) {
    good = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    for (int i = 0; i < 10; ++i)
      good = good && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
  }
  Fact(good, "private expedited barriers");
  Fact(syscall(SYS_membarrier, 1 << 30, 0, 0) == -1 && errno == EINVAL, "unknown command: EINVAL");
  return Done();
}
