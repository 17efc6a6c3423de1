// After fork each side writes without the other seeing it, page by page, in every kind of private
// memory.
#include "guest.h"

static int data[5000] = {1};
static int bss[5000];

int main(void) {
  int local[1000];
  int* heap = malloc(sizeof(int) * 5000);
  int* mapped = Map(64 * kPage, PROT_READ | PROT_WRITE);
  int ends[2];
  if (pipe(ends) != 0) return 1;
  for (int i = 0; i < 5000; ++i) data[i] = bss[i] = heap[i] = i;
  for (int i = 0; i < 1000; ++i) local[i] = i;
  for (int i = 0; i < 64; ++i) mapped[i * 1024] = i;
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    if (read(ends[0], &byte, 1) != 1) _exit(1);
    bool same = true;
    for (int i = 0; i < 5000; ++i) same = same && data[i] == i && bss[i] == i && heap[i] == i;
    for (int i = 0; i < 1000; ++i) same = same && local[i] == i;
    for (int i = 0; i < 64; ++i) same = same && mapped[i * 1024] == i;
    Fact(same, "the child does not see what the parent wrote after fork");
    for (int i = 0; i < 5000; ++i) data[i] = bss[i] = heap[i] = -1;
    _exit(Done());
  }
  for (int i = 0; i < 5000; ++i) data[i] = bss[i] = heap[i] = i + 7;
  for (int i = 0; i < 1000; ++i) local[i] = i + 7;
  for (int i = 0; i < 64; ++i) mapped[i * 1024] = i + 7;
  if (write(ends[1], "x", 1) != 1) return 1;
  Fact(Reap(child) == 0, "child was content");
  bool same = true;
  for (int i = 0; i < 5000; ++i)
    same = same && data[i] == i + 7 && bss[i] == i + 7 && heap[i] == i + 7;
  Fact(same, "the parent does not see what the child wrote");
  free(heap);
  return Done();
}
