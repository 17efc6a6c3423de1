// Answers of arch_prctl about what the processor saves of a thread.
#include <asm/prctl.h>

#include "guest.h"

enum { kGetSupported = 0x1021, kGetPermitted = 0x1022, kRequest = 0x1023, kTiles = 18 };

int main(void) {
  unsigned long supported = 0, permitted = 0;
  if (syscall(SYS_arch_prctl, kGetSupported, &supported) != 0) Skip("the kernel does not say");
  Fact((supported & 3) == 3, "x87 and SSE are supported");
  Fact(syscall(SYS_arch_prctl, kGetPermitted, &permitted) == 0 && (permitted & 3) == 3,
       "and permitted");
  Fact((permitted & ~supported) == 0, "nothing is permitted that is not supported");
  Fact(syscall(SYS_arch_prctl, kGetSupported, NULL) == -1 && errno == EFAULT, "EFAULT");
  Fact(syscall(SYS_arch_prctl, kRequest, 63) == -1, "a feature nobody has");
  return Done();
}
