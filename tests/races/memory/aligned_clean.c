// Aligned and zeroed blocks that are given back and used again by another thread.
// CLEAN
// BUILD O0 O2 static
#include <malloc.h>

#include "race.h"

static void* Works(void* argument) {
  for (int i = 0; i < 5; i++) {
    long* blocks[4] = {aligned_alloc(64, 128), memalign(32, 128), calloc(4, 32), valloc(128)};
    blocks[2] = reallocarray(blocks[2], 8, 32);
    for (int k = 0; k < 4; k++) blocks[k][i] = i;
    for (int k = 0; k < 4; k++) free(blocks[k]);
  }
  return argument;
}

int main(void) {
  RunTwo(Works, Works);
  return Done();
}
