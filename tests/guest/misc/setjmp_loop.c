#include "guest.h"

static jmp_buf back;
static volatile int bottom;
static int Deep(int depth) {
  if (depth == bottom) longjmp(back, 5);
  if (depth < 0) return 0;
  return Deep(depth - 1) + 1;
}

int main(void) {
  volatile int jumps = 0;
  for (volatile int i = 0; i < 1000; ++i) {
    const int value = setjmp(back);
    if (value == 0) Deep(50);
    jumps += value == 5;
  }
  Fact(jumps == 1000, "1000 jumps out of 50 frames");
  return Done();
}
