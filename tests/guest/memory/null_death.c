#include "guest.h"

int main(void) {
  NoCore();
  Fact(true, "reading address 0");
  return *(volatile int*)(uintptr_t)16;
}
