// The main stack grows as it is used, by small and by large frames.
#include "guest.h"

static int Recurse(int depth, volatile char* above) {
  volatile char frame[1000];
  frame[0] = (char)depth;
  frame[999] = above[0];
  if (depth == 0) return 0;
  const int below = Recurse(depth - 1, frame);
  return below + (frame[0] == (char)depth);
}

__attribute__((noinline)) static int LargeFrame(void) {
  volatile char frame[1 << 20];
  frame[0] = 1;
  frame[sizeof(frame) - 1] = 2;
  return frame[0] + frame[sizeof(frame) - 1] + frame[1 << 19] * 0;
}

int main(void) {
  volatile char start[1] = {0};
  Fact(Recurse(4000, start) == 4000, "4000 frames of a kilobyte");
  Fact(LargeFrame() == 3, "a frame of a megabyte");
  return Done();
}
