// A lock made of std::atomic_flag with wait and notify.
// CLEAN
#include "count_under_lock.h"
#include "flag_wait.h"

int main() { return CountUnderLock(); }
