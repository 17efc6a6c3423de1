// Threads that map, fill, check and unmap at once.
#include "guest.h"

static int good;

static void* Work(void* argument) {
  const char value = (char)(intptr_t)argument;
  for (int i = 0; i < 100; ++i) {
    const size_t size = (size_t)(1 + i % 7) * kPage;
    char* p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    for (size_t j = 0; j < size; j += 512) {
      if (p[j] != 0) return NULL;
      p[j] = value;
    }
    sched_yield();
    for (size_t j = 0; j < size; j += 512) {
      if (p[j] != value) return NULL;
    }
    munmap(p, size);
  }
  Add(&good, 1);
  return NULL;
}

int main(void) {
  pthread_t threads[6];
  for (intptr_t i = 0; i < 6; ++i) threads[i] = Start(Work, (void*)(i + 1));
  for (int i = 0; i < 6; ++i) pthread_join(threads[i], NULL);
  Fact(good == 6, "6 threads, 100 mappings each");
  return Done();
}
