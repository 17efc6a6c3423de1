#include <malloc.h>

#include "guest.h"

static int good;

static void* Work(void* argument) {
  unsigned seed = (unsigned)(intptr_t)argument;
  unsigned char* block[64] = {0};
  size_t size[64] = {0};
  for (int i = 0; i < 20000; ++i) {
    seed = seed * 1103515245 + 12345;
    const unsigned slot = (seed >> 16) % 64;
    if (block[slot] != NULL) {
      const unsigned char value = (unsigned char)(slot ^ size[slot]);
      if (block[slot][0] != value || block[slot][size[slot] - 1] != value) return NULL;
    }
    free(block[slot]);
    size[slot] = 1 + (seed >> 8) % (i % 500 == 0 ? 1000000 : 3000);
    block[slot] = malloc(size[slot]);
    if (block[slot] == NULL) return NULL;
    block[slot][0] = block[slot][size[slot] - 1] = (unsigned char)(slot ^ size[slot]);
  }
  for (int i = 0; i < 64; ++i) free(block[i]);
  Add(&good, 1);
  return NULL;
}

int main(void) {
  pthread_t threads[4];
  for (intptr_t i = 0; i < 4; ++i) threads[i] = Start(Work, (void*)(i + 1));
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  Fact(good == 4, "4 threads, 20000 allocations each");
  char* large = malloc((size_t)64 << 20);
  large[0] = large[((size_t)64 << 20) - 1] = 1;
  large = realloc(large, (size_t)128 << 20);
  Fact(large[0] == 1, "a large block grown");
  free(large);
  malloc_trim(0);
  return Done();
}
