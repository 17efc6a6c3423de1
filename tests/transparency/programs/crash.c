/* Ends in the way the first argument names. */
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int depth(int n) {
  volatile char pad[4096];
  pad[0] = (char)n;
  return depth(n + 1) + pad[0];
}

static void* segv(void* unused) {
  *(volatile int*)16 = 1;
  return unused;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  puts("about to end");
  fflush(stdout);
  if (!strcmp(how, "segv")) segv(0);
  if (!strcmp(how, "fpe")) {
    volatile int zero = 0;
    return argc / zero;
  }
  if (!strcmp(how, "ill")) __asm__ volatile("ud2");
  if (!strcmp(how, "trap")) __asm__ volatile("int3");
  if (!strcmp(how, "bus")) {
    int fd = open("empty", O_RDWR | O_CREAT, 0600);
    char* p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    unlink("empty");
    *p = 1;
  }
  if (!strcmp(how, "thread")) {
    pthread_t thread;
    pthread_create(&thread, 0, segv, 0);
    for (;;) pause();
  }
  if (!strcmp(how, "stack")) return depth(0);
  if (!strcmp(how, "assert")) assert(!"an assertion");
  return 0;
}
