// A thread waits by plain loads for flags that another one sets by an exchange, each on a page that
// nobody has used for anything but waiting.
// CLEAN
// BUILD gcc-O2 gcc-O2-nodebug
// TAGS fast
// SECONDS 60
// OPTIONS --hot-after=1000000000 --settle-after=0
#include "race.h"

enum { kRounds = 300 };

struct Page {
  int flag;
  int rest[1023];
};

static struct Page* pages;
static int values[kRounds];
static int turns;

static void* Sender(void* argument) {
  for (int i = 0; i < kRounds; i++) {
    for (int wait = 0; wait < 4; wait++) usleep(20);
    values[i] = i;
    __atomic_exchange_n(&pages[i].flag, 1, __ATOMIC_SEQ_CST);
  }
  return argument;
}

static void* Receiver(void* argument) {
  for (int i = 0; i < kRounds; i++) {
    for (unsigned looks = 0; __atomic_load_n(&pages[i].flag, __ATOMIC_ACQUIRE) == 0; looks++) {
      // What it has read before is over.
      if (looks % 256 == 0) __atomic_fetch_add(&turns, 1, __ATOMIC_SEQ_CST);
    }
    Check(values[i] == i);
    values[i]++;
  }
  return argument;
}

int main(void) {
  pages = aligned_alloc(4096, kRounds * sizeof *pages);
  for (int i = 0; i < kRounds; i++) pages[i].flag = 0;
  RunTwo(Sender, Receiver);
  return Done();
}
