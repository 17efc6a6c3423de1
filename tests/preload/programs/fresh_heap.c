// Blocks that the program did not write, and where the first of them lies.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kPage = 4096, kLargest = 1024, kStep = 16 };

int main(void) {
  int changed = 0;
  for (size_t size = 8; size <= kLargest; size += kStep) {
    const unsigned char* block = malloc(size);
    for (size_t i = 0; i < size; ++i) changed += block[i] != 0;
    if (size == 8) printf("%d\n", (int)((uintptr_t)block % kPage));
  }
  printf("%d bytes\n", changed);
  return 0;
}
