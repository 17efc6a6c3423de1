#include "raw_clone.h"

static int id_word = -1;  // the child stores its id when it first runs
static int parent_word;
static int id_seen_by_child;
static int ran;

static void Child(void* argument) {
  (void)argument;
  Store(&id_seen_by_child, Load(&id_word));
  Store(&ran, (int)RawSystemCall(SYS_gettid, 0, 0, 0));
}

int main(void) {
  char* stack = Map(65536, PROT_READ | PROT_WRITE);
  const long id =
      RawClone(kThreadFlags | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
               stack + 65536, &parent_word, &id_word, NULL, Child, NULL);
  Fact(id > 0, "clone gave an id");
  AwaitCleared(&id_word);
  Fact(parent_word == id, "CLONE_PARENT_SETTID stored the id");
  Fact(id_seen_by_child == id, "CLONE_CHILD_SETTID stored the id before the child ran");
  Fact(ran == id, "gettid in the child is the id");
  Fact(id_word == 0, "CLONE_CHILD_CLEARTID cleared the word and woke the futex");
  return Done();
}
