// A ticket lock.
// CLEAN
// TAGS fast
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's
#include "count_under_lock.h"
#include "ticket.h"

int main(void) { return CountUnderLock(); }
