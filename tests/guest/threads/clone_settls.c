#include "raw_clone.h"

static void* tls_area[8];
static void* fs0;
static int inherited_same;
static int id;
static int parent_id;

static void ReadFs(void* argument) {
  void* value;
  __asm__ volatile("mov %%fs:0, %0" : "=r"(value));
  __atomic_store_n((void**)argument, value, __ATOMIC_SEQ_CST);
}

static void* parent_fs0;
static void Compare(void* argument) {
  void* value;
  __asm__ volatile("mov %%fs:0, %0" : "=r"(value));
  Store((int*)argument, value == parent_fs0);
}

int main(void) {
  char* stack = Map(65536, PROT_READ | PROT_WRITE);
  tls_area[0] = (void*)0x1234;
  const long flags = kThreadFlags | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID;
  id = -1;
  RawClone(flags | CLONE_SETTLS, stack + 65536, &parent_id, &id, tls_area, ReadFs, &fs0);
  AwaitCleared(&id);
  Fact(fs0 == (void*)0x1234, "CLONE_SETTLS: fs points to the given block");
  __asm__ volatile("mov %%fs:0, %0" : "=r"(parent_fs0));
  id = -1;
  RawClone(flags, stack + 65536, &parent_id, &id, NULL, Compare, &inherited_same);
  AwaitCleared(&id);
  Fact(inherited_same == 1, "without CLONE_SETTLS the parent's fs is inherited");
  return Done();
}
