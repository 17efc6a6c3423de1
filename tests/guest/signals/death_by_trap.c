#include "guest.h"

int main(void) {
  NoCore();
  Fact(true, "executing int3");
  __asm__ volatile("int3");
  return 1;
}
