/* Gives the allocator what it must refuse; the message and the end are the allocator's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char** arguments) {
  if (count < 2) return 2;
  volatile long words[64] = {0};
  char* volatile block = calloc(1, 24);
  if (strcmp(arguments[1], "twice") == 0) {
    free(block);
    free(block);
  } else if (strcmp(arguments[1], "inside") == 0) {
    free(block + 8);
  } else if (strcmp(arguments[1], "stack") == 0) {
    free((void*)(((unsigned long)words + 31) & ~15UL));
  } else if (strcmp(arguments[1], "huge") == 0) {
    /* A header that claims terabytes. */
    long* fake = (long*)(((unsigned long)words + 31) & ~15UL);
    fake[-1] = 1L << 44;
    free(fake);
  }
  puts("survived");
  return 0;
}
