// A chain of processes, each adding one to the numbers that pass through; and a large transfer.
#include "guest.h"

int main(void) {
  int first[2];
  if (pipe(first) != 0) return 1;
  int in = first[0];
  for (int i = 0; i < 5; ++i) {
    int next[2];
    if (pipe(next) != 0) return 1;
    if (fork() == 0) {
      close(first[1]);
      close(next[0]);
      int number;
      while (read(in, &number, sizeof(number)) == sizeof(number)) {
        ++number;
        if (write(next[1], &number, sizeof(number)) != sizeof(number)) _exit(1);
      }
      _exit(0);
    }
    close(in);
    close(next[1]);
    in = next[0];
  }
  bool good = true;
  for (int i = 0; i < 200; ++i) {
    int number = i;
    if (write(first[1], &number, sizeof(number)) != sizeof(number)) return 1;
    good = good && read(in, &number, sizeof(number)) == sizeof(number) && number == i + 5;
  }
  Fact(good, "200 numbers through 5 processes");
  close(first[1]);
  int clean = 0;
  int status;
  while (wait(&status) > 0) clean += status == 0;
  Fact(clean == 5, "all ended at the end of input");
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const size_t size = (size_t)8 << 20;
  unsigned char* data = Map(size, PROT_READ | PROT_WRITE);
  for (size_t i = 0; i < size; ++i) data[i] = (unsigned char)(i * 31 + (i >> 12));
  if (fork() == 0) {
    close(ends[0]);
    _exit(write(ends[1], data, size) == (ssize_t)size ? 0 : 1);
  }
  close(ends[1]);
  unsigned char* copy = Map(size, PROT_READ | PROT_WRITE);
  size_t got = 0;
  ssize_t part;
  while ((part = read(ends[0], copy + got, size - got)) > 0) got += (size_t)part;
  Fact(got == size && memcmp(data, copy, size) == 0, "8 MiB in one write");
  Fact(wait(&status) > 0 && status == 0, "written whole");
  return Done();
}
