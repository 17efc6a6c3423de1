/* Defines its own allocator: the preload library has no say in it. */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static _Alignas(16) char memory[1 << 20];
static size_t used;
static int allocations;
static int releases;

void* malloc(size_t size) {
  size_t at = __atomic_fetch_add(&used, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED);
  if (at + size + 16 > sizeof(memory)) return NULL;
  __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
  *(size_t*)(void*)(memory + at) = size;
  return memory + at + 16;
}

void free(void* block) {
  if (block) __atomic_fetch_add(&releases, 1, __ATOMIC_RELAXED);
}

void* calloc(size_t count, size_t size) {
  void* block = malloc(count * size);
  if (block) memset(block, 0, count * size);
  return block;
}

void* realloc(void* block, size_t size) {
  void* moved = malloc(size);
  if (block && moved) {
    size_t old = ((size_t*)block)[-2];
    memcpy(moved, block, old < size ? old : size);
    free(block);
  }
  return moved;
}

static void* Work(void* argument) {
  char* copy = strdup(argument);
  free(copy);
  return NULL;
}

int main(void) {
  int before = allocations;
  pthread_t thread;
  pthread_create(&thread, NULL, Work, "text");
  pthread_join(thread, NULL);
  char* copy = strdup("own");
  printf("%s %d\n", copy, allocations - before >= 2 && releases >= 1);
  return 0;
}
