// Restartable sequences: the library may have registered one, or the kernel may not know them; the
// program works either way.
#include "guest.h"

int main(void) {
  static struct { uint32_t words[8]; } __attribute__((aligned(32))) area;
  errno = 0;
  const long result = syscall(334, &area, 32, 0, 0x53053053);
  Fact(result == 0 || errno == ENOSYS || errno == EBUSY || errno == EPERM || errno == EINVAL,
       "works, is refused or is unknown");
  Fact(sched_getcpu() >= 0, "the processor's number can be told anyway");
  return Done();
}
