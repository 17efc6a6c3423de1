// A thread's walk over memory, one page of 16: only what it touches is in memory.
#include <pthread.h>

#include "guest.h"

enum { kPages = 16384, kStride = 16 };

static char* memory;

static void* Walk(void* unused) {
  static char own[4096];
  for (int i = 0; i < 300000; ++i) ++((volatile char*)own)[i % 4096];
  for (long page = 0; page < kPages; page += kStride) memory[page * kPage] = 1;
  return unused;
}

int main(void) {
  memory = Map(kPages * kPage, PROT_READ | PROT_WRITE);
  madvise(memory, kPages * kPage, MADV_NOHUGEPAGE);
  pthread_t thread;
  pthread_create(&thread, NULL, Walk, NULL);
  pthread_join(thread, NULL);
  static unsigned char resident[kPages];
  Fact(mincore(memory, kPages * kPage, resident) == 0, "mincore");
  int pages = 0;
  for (int i = 0; i < kPages; ++i) pages += resident[i] & 1;
  Fact(pages == kPages / kStride, "untouched pages are not in memory");
  return Done();
}
