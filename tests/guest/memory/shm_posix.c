#include "guest.h"

int main(void) {
  char name[64];
  snprintf(name, sizeof(name), "/guest-%d", getpid());
  const int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (fd < 0) Skip("no POSIX shared memory");
  if (ftruncate(fd, 2 * kPage) != 0) return 1;
  int* p = mmap(NULL, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const pid_t child = fork();
  if (child == 0) {
    const int again = shm_open(name, O_RDWR, 0);
    int* q = mmap(NULL, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
    for (int i = 0; i < 10000; ++i) __atomic_add_fetch(q, 1, __ATOMIC_SEQ_CST);
    _exit(0);
  }
  for (int i = 0; i < 10000; ++i) __atomic_add_fetch(p, 1, __ATOMIC_SEQ_CST);
  Fact(Reap(child) == 0, "child done");
  Fact(*p == 20000, "two processes counted to 20000");
  Fact(shm_unlink(name) == 0, "unlinked");
  Fact(shm_open(name, O_RDWR, 0) == -1 && errno == ENOENT, "and gone");
  Fact(*p == 20000, "the mapping stays");
  return Done();
}
