// A queue lock: every waiter spins on its predecessor's word.
// CLEAN
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's
#include "clh.h"
#include "count_under_lock.h"

int main() { return CountUnderLock(); }
