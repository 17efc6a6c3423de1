#include <sys/ipc.h>
#include <sys/shm.h>

#include "fault.h"

int main(void) {
  CatchFaults();
  const int id = shmget(IPC_PRIVATE, 4 * kPage, IPC_CREAT | 0600);
  if (id < 0) Skip("no System V shared memory");
  char* a = shmat(id, NULL, 0);
  char* b = shmat(id, NULL, SHM_RDONLY);
  Fact(a != (void*)-1 && b != (void*)-1 && a != b, "attached twice");
  shmctl(id, IPC_RMID, NULL);
  strcpy(a, "shared");
  Fact(strcmp(b, "shared") == 0, "both show the same");
  Fact(FAULTS(*(volatile char*)b = 1) && SegvWas(SEGV_ACCERR, b), "SHM_RDONLY cannot be written");
  const pid_t child = fork();
  if (child == 0) {
    strcpy(a + kPage, "from the child");
    _exit(shmdt(a));
  }
  Reap(child);
  Fact(strcmp(b + kPage, "from the child") == 0, "inherited by a child");
  Fact(shmdt(a) == 0, "detached");
  Fact(FAULTS(*(volatile char*)a) && SegvWas(SEGV_MAPERR, a), "gone");
  Fact(strcmp(b, "shared") == 0, "the other is still there");
  Fact(shmdt(b) == 0 && shmdt(b) == -1 && errno == EINVAL, "detached; a second time is EINVAL");
  return Done();
}
