// Fork while other threads allocate, map and lock.
#include "guest.h"

static int stop;
static void* Churn(void* argument) {
  unsigned long sum = 0;
  while (!Load(&stop)) {
    char* p = mmap(NULL, 8 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    p[kPage] = 1;
    char* q = malloc(5000);
    q[100] = 2;
    sum += (unsigned long)p[kPage] + (unsigned long)q[100];
    free(q);
    munmap(p, 8 * kPage);
  }
  *(unsigned long*)argument = sum;
  return NULL;
}

int main(void) {
  unsigned long sums[3] = {0};
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) threads[i] = Start(Churn, &sums[i]);
  int good = 0;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      char* block = malloc(10000);
      memset(block, 1, 10000);
      _exit(block[9999]);
    }
    good += WEXITSTATUS(Reap(child)) == 1;
  }
  Store(&stop, 1);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  Fact(good == 20, "20 children could allocate");
  Fact(sums[0] % 3 == 0 && sums[1] % 3 == 0 && sums[2] % 3 == 0, "the threads were not disturbed");
  return Done();
}
