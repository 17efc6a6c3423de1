// GCC's transactions: the run-time library reads and writes for the program, and its locks and
// clock are atomics in code without debug info.
// CLEAN
// FLAGS -fgnu-tm -Wno-clobbered
// BUILD O0 O2
// TSAN-DIFFERS it knows nothing of libitm.so
#include "race.h"

enum { kItems = 300 };

struct Item {
  struct Item* next;
  long value;
};

static struct Item* head;
static int is_done;

static void* Produces(void* argument) {
  for (long i = 0; i < kItems; i++) {
    struct Item* const item = malloc(sizeof *item);
    item->value = i;
    __transaction_atomic {
      item->next = head;
      head = item;
    }
  }
  __transaction_atomic { is_done = 1; }
  return argument;
}

static long Consume(void) {
  long sum = 0;
  for (;;) {
    struct Item* item;
    int over;
    __transaction_atomic {
      over = is_done;
      item = head;
      if (item) head = item->next;
    }
    if (item) {
      sum += item->value;
      item->value = -1;
      free(item);
    } else if (over) {
      return sum;
    }
  }
}

int main(void) {
  const pthread_t thread = Start(Produces, NULL);
  printf("%ld\n", Consume());
  Join(thread);
  return 0;
}
