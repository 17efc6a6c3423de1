#include "guest.h"

static __thread unsigned char large[1 << 20];
static __thread int last = 3;
static int good;

static void* Fill(void* argument) {
  const unsigned char value = (unsigned char)(intptr_t)argument;
  for (size_t i = 0; i < sizeof(large); i += 512) {
    if (large[i] != 0) return NULL;
    large[i] = value;
  }
  for (size_t i = 0; i < sizeof(large); i += 512) {
    if (large[i] != value) return NULL;
  }
  if (last == 3) Add(&good, 1);
  return NULL;
}

int main(void) {
  pthread_t threads[8];
  Fill((void*)99);
  for (intptr_t i = 0; i < 8; ++i) threads[i] = Start(Fill, (void*)(i + 1));
  for (int i = 0; i < 8; ++i) pthread_join(threads[i], NULL);
  Fact(good == 9, "9 threads with a megabyte of thread-local storage each");
  return Done();
}
