// Places that are not in the program are told of at the end, those that are there are not.
// CLEAN
// OPTIONS --untrack=Cuonts --untrack=libnothing.so* --atomic=sesame --plain=Looks --untrack=0x1000+16 --untrack=libc.so*
// SAYS trapline: --untrack=Cuonts matched no module, function or variable
// SAYS trapline: --untrack=libnothing.so* matched no module, function or variable
// SAYS trapline: --untrack=0x1000+16 matched no access that was checked
// SAYS trapline: --atomic=sesame matched no function, variable, source file or library
// TSAN-DIFFERS it has no such options
#include "race.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void* Looks(void* argument) {
  pthread_mutex_lock(&lock);
  ++count;
  pthread_mutex_unlock(&lock);
  return argument;
}

int main(void) {
  RunTwo(Looks, Looks);
  Use(count);
  return Done();
}
