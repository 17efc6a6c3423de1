// A lock in one bit of a word of flags, as kernels have it.
// CLEAN
#include "bit.h"
#include "count_under_lock.h"

int main(void) { return CountUnderLock(); }
