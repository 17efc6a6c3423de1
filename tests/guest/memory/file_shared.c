#include "guest.h"

int main(void) {
  const int fd = OpenTemporary();
  if (ftruncate(fd, 2 * kPage) != 0) return 1;
  char* p = mmap(NULL, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  Fact(p != MAP_FAILED && p[0] == 0, "mapped");
  strcpy(p + 100, "through the mapping");
  char text[32] = "";
  Fact(pread(fd, text, sizeof(text), 100) > 0 && strcmp(text, "through the mapping") == 0,
       "read(2) sees what was stored");
  Fact(pwrite(fd, "by write", 9, kPage) == 9 && strcmp(p + kPage, "by write") == 0,
       "the mapping sees what was written");
  const pid_t child = fork();
  if (child == 0) {
    strcpy(p + 200, "child");
    _exit(0);
  }
  Reap(child);
  Fact(strcmp(p + 200, "child") == 0, "a child's store is seen");
  char* second = mmap(NULL, kPage, PROT_READ, MAP_SHARED, fd, kPage);
  Fact(strcmp(second, "by write") == 0, "mapped twice, at an offset");
  p[kPage] = 'B';
  Fact(second[0] == 'B', "both mappings are one");
  Fact(msync(p, 2 * kPage, MS_SYNC) == 0, "msync");
  munmap(p, 2 * kPage);
  Fact(pread(fd, text, 1, kPage) == 1 && text[0] == 'B', "still in the file after munmap");
  const int reader = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  Fact(mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, reader, 0) == MAP_FAILED &&
           errno == EACCES,
       "writing a file open for reading is EACCES");
  return Done();
}
