#include "guest.h"

int main(void) {
  NoCore();
  Fact(true, "writing into the program's code");
  *(volatile char*)(uintptr_t)main = 0;
  return 1;
}
