#include "guest.h"

int main(void) {
  NoCore();
  Fact(true, "executing ud2");
  __asm__ volatile("ud2");
  return 1;
}
