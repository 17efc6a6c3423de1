// A reader-writer lock with a flag for each reader; the writer takes them all.
// CLEAN
#include "big_reader.h"

long data;

static void Read(Slot& slot) {
  for (int i = 0; i < 10; i++) {
    LockOne(slot);
    Use(data);
    UnlockOne(slot);
  }
}

static void Write() {
  for (Slot& slot : slots) LockOne(slot);
  data++;
  for (Slot& slot : slots) UnlockOne(slot);
}

int main() { return RunReaders(Read, Write); }
