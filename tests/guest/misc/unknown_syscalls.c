#include "guest.h"

int main(void) {
  const long numbers[] = {340, 400, 423, 1000, 5000, 99999, 0x7fffffff, -1, -100};
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
    errno = 0;
    Fact(syscall(numbers[i], 1, 2, 3, 4, 5, 6) == -1 && errno == ENOSYS,
         "system call %ld is ENOSYS", numbers[i]);
  }
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(0xffff00000027UL) : "rcx", "r11", "memory");
  Fact(result == getpid() || result == -ENOSYS, "the upper half of the number");
  Fact(true, "still alive");
  return Done();
}
