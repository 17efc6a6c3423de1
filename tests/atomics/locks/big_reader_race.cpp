// A lock with a flag for each reader is taken neither for a last read nor for writing.
// RACE any global:data r w
// ALSO any s w
// MAY-MISS shared: who had the page first did so alone
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include "big_reader.h"

long data;

static void Read(Slot& slot) {
  for (int i = 0; i < 10; i++) {
    LockOne(slot);
    Use(data);  // [s]
    UnlockOne(slot);
  }
  Use(data);  // [r]
}

static void Write() {
  usleep(30000);
  data++;  // [w]
}

int main() { return RunReaders(Read, Write); }
