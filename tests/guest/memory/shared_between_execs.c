// A memfd inherited over exec is the same memory before and after, in parent and child.
#include "guest.h"

int main(int argc, char** argv) {
  if (argc > 1) {
    int* p = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[1]), 0);
    for (int i = 0; i < 10000; ++i) __atomic_add_fetch(p, 1, __ATOMIC_SEQ_CST);
    return p == MAP_FAILED;
  }
  const int fd = memfd_create("inherited", 0);
  if (ftruncate(fd, kPage) != 0) return 1;
  int* p = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  char number[16];
  snprintf(number, sizeof(number), "%d", fd);
  pid_t children[3];
  for (int i = 0; i < 3; ++i) {
    children[i] = fork();
    if (children[i] == 0) {
      char* arguments[] = {argv[0], number, NULL};
      execv("/proc/self/exe", arguments);
      _exit(1);
    }
  }
  for (int i = 0; i < 10000; ++i) __atomic_add_fetch(p, 1, __ATOMIC_SEQ_CST);
  int good = 0;
  for (int i = 0; i < 3; ++i) good += Reap(children[i]) == 0;
  Fact(good == 3 && *p == 40000, "4 processes counted to 40000 in one memfd");
  return Done();
}
