// Drepper's mutex of a futex with three states.
// CLEAN
// TAGS fast
#include "count_under_lock.h"
#include "drepper.h"

int main(void) { return CountUnderLock(); }
