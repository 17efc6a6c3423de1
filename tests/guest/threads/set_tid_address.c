#include "raw_clone.h"

static int word;

static void Child(void* argument) {
  // A private address first, then the one that counts.
  RawSystemCall(SYS_set_tid_address, (long)argument, 0, 0);
  const long id = RawSystemCall(SYS_set_tid_address, (long)&word, 0, 0);
  Store((int*)argument, (int)id);
}

int main(void) {
  Fact(syscall(SYS_set_tid_address, &word) == getpid(), "set_tid_address returns the thread id");
  static int id;
  char* stack = Map(65536, PROT_READ | PROT_WRITE);
  Store(&word, 1);
  const long child = RawClone(kThreadFlags, stack + 65536, NULL, NULL, NULL, Child, &id);
  AwaitCleared(&word);
  Fact(id == child, "a thread made without CLONE_CHILD_CLEARTID can ask for it later");
  Fact(word == 0, "the word was cleared at its end");
  return Done();
}
