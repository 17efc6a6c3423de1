#include "raw_clone.h"

static long Clone(unsigned long flags) {
  errno = 0;
  const long result = syscall(SYS_clone, flags, 0L, 0L, 0L, 0L);
  if (result == 0) _exit(1);
  return result;
}

int main(void) {
  Fact(Clone(CLONE_THREAD) == -1 && errno == EINVAL,
       "CLONE_THREAD without CLONE_SIGHAND is EINVAL");
  Fact(Clone(CLONE_SIGHAND) == -1 && errno == EINVAL, "CLONE_SIGHAND without CLONE_VM is EINVAL");
  Fact(Clone(CLONE_NEWNS | CLONE_FS) == -1 && errno == EINVAL,
       "CLONE_NEWNS with CLONE_FS is EINVAL");
  Fact(syscall(SYS_clone3, NULL, 64) == -1 && errno == EFAULT,
       "clone3 without arguments is EFAULT");
  char small[16] = {0};
  Fact(syscall(SYS_clone3, small, sizeof(small)) == -1 && errno == EINVAL,
       "clone3 with a short block is EINVAL");
  return Done();
}
