#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint32_t hash(const char* s) {
  uint32_t h = 2166136261u;
  for (; *s; s++) h = (h ^ (unsigned char)*s) * 16777619u;
  return h;
}

int main(void) {
  char line[64];
  uint32_t all = 0;
  for (int i = 0; i < 100000; i++) {
    snprintf(line, sizeof line, "line %d", i);
    all ^= hash(line);
  }
  printf("hash %08x\n", all);
  return 0;
}
