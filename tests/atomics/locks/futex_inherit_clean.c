// A lock by FUTEX_LOCK_PI: the kernel hands it over when there are waiters.
// CLEAN
#include "count_under_lock.h"
#include "futex_inherit.h"

int main(void) { return CountUnderLock(); }
