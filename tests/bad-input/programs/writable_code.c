// Two threads add to a counter by turns, in code that can be written while it can be executed.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { kCalls = 250, kAdditions = 100 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long counter;
static void (*add)(long* to, long times);

static void* Run(void* argument) {
  for (int i = 0; i < kCalls; i++) {
    pthread_mutex_lock(&mutex);
    add(&counter, kAdditions);
    pthread_mutex_unlock(&mutex);
  }
  return argument;
}

int main(void) {
  // 1: incq (%rdi); dec %rsi; jnz 1b; ret
  static const unsigned char code[] = {0x48, 0xff, 0x07, 0x48, 0xff, 0xce, 0x75, 0xf8, 0xc3};
  void* const memory =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  memcpy(memory, code, sizeof code);
  memcpy(&add, &memory, sizeof add);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, Run, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  printf("%ld\n", counter);
  return 0;
}
