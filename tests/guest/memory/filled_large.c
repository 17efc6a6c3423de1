// Memory of many megabytes, filled from its beginning, which may have huge pages: whatever is done
// to parts of it, they are pages of 4 KiB to the program.
#include "fault.h"

enum { kMiB = 1 << 20, kSize = 24 * kMiB, kPages = kSize / kPage };

static uint64_t* memory;

static uint64_t* At(size_t page) { return memory + page * kPage / sizeof(uint64_t); }
static uint64_t Pattern(size_t page) { return page * 0x9e3779b97f4a7c15u + 1; }

// Whether all pages of [first, end) hold their pattern plus `more`.
static bool Holds(size_t first, size_t end, uint64_t more) {
  for (size_t page = first; page < end; ++page) {
    if (*At(page) != Pattern(page) + more || At(page)[511] != page) return false;
  }
  return true;
}

static void* Increment(void* half) {
  const size_t first = half != NULL ? kPages / 2 : 0;
  for (size_t page = first; page < first + kPages / 2; ++page) ++*At(page);
  return NULL;
}

int main(void) {
  CatchFaults();
  memory = Map(kSize, PROT_READ | PROT_WRITE);
  bool zero = true;
  for (size_t page = 0; page < kPages; ++page) {
    zero = zero && *At(page) == 0 && At(page)[511] == 0;
    *At(page) = Pattern(page);
    At(page)[511] = page;
  }
  Fact(zero && Holds(0, kPages, 0), "filled");

  const size_t middle = kPages / 2 + 3;
  mprotect(At(middle), kPage, PROT_READ);
  Fact(FAULTS(*(volatile uint64_t*)At(middle) = 0) && SegvWas(SEGV_ACCERR, At(middle)),
       "one page is read-only");
  *At(middle - 1) += 1;
  *At(middle + 1) += 1;
  *At(middle - 1) -= 1;
  *At(middle + 1) -= 1;
  mprotect(At(middle), kPage, PROT_READ | PROT_WRITE);
  Fact(Holds(0, kPages, 0), "and nothing else");

  const pid_t child = fork();
  if (child == 0) {
    Increment(NULL);
    Increment(memory);
    _exit(Holds(0, kPages, 1) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  Fact(status == 0 && Holds(0, kPages, 0), "a child's are its own");

  // A mapping that is in one piece can be moved as one.
  uint64_t* const place = Map(kSize, PROT_NONE);
  Fact(mremap(memory, kSize, kSize, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place, "moved");
  memory = place;
  Fact(Holds(0, kPages, 0), "with what it held");

  madvise(At(700), 1000 * kPage, MADV_DONTNEED);
  Fact(*At(700) == 0 && *At(1699) == 0 && Holds(0, 700, 0) && Holds(1700, kPages, 0),
       "a part is given back");
  for (size_t page = 700; page < 1700; ++page) {
    *At(page) = Pattern(page);
    At(page)[511] = page;
  }

  pthread_t threads[2];
  pthread_create(&threads[0], NULL, Increment, NULL);
  pthread_create(&threads[1], NULL, Increment, memory);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  Fact(Holds(0, kPages, 1), "used by two threads");

  munmap(At(5), kPage);
  Fact(FAULTS(*(volatile uint64_t*)At(5)) && SegvWas(SEGV_MAPERR, At(5)) && Holds(0, 5, 1) &&
           Holds(6, kPages, 1),
       "a page is unmapped");
  return Done();
}
