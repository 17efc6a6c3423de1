// A semaphore made of a counter and a futex, as a lock.
// CLEAN
#include "count_under_lock.h"
#include "futex_semaphore.h"

int main(void) { return CountUnderLock(); }
