// Changes of namespace that the kernel allows only to a process with one thread.
#include "guest.h"

static int InChild(int (*change)(void)) {
  const pid_t child = fork();
  if (child == 0) {
    if (change() != 0) _exit(errno);
    // The memory is still there, and a child and a thread can still be made.
    volatile char* const page = Map(kPage, PROT_READ | PROT_WRITE);
    page[0] = 1;
    const pid_t grandchild = fork();
    if (grandchild == 0) execl("/bin/true", "true", NULL);
    int status = 0;
    waitpid(grandchild, &status, 0);
    _exit(page[0] == 1 ? WEXITSTATUS(status) : 99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

static int NewUser(void) { return unshare(CLONE_NEWUSER); }
static int NewUserAndMounts(void) { return unshare(CLONE_NEWUSER | CLONE_NEWNS); }
static int NewUserAndPids(void) { return unshare(CLONE_NEWUSER | CLONE_NEWPID); }
static int UnshareThread(void) { return unshare(CLONE_THREAD); }
static int UnshareMemory(void) { return unshare(CLONE_VM); }
static int BadFlags(void) { return unshare(CLONE_PARENT); }

static int JoinMounts(void) {
  const int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
  return own < 0 ? -1 : setns(own, CLONE_NEWNS);
}

static void* Wait(void* argument) {
  pause();
  return argument;
}

static int UnshareWithThread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, Wait, NULL);
  return unshare(CLONE_THREAD);
}

static void* End(void* argument) { return argument; }

// The kernel may need a moment for the thread to be gone.
static int UnshareAfterThread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, End, NULL);
  pthread_join(thread, NULL);
  for (int i = 0; i < 100 && unshare(CLONE_THREAD) != 0; ++i) {
    if (errno != EINVAL) return -1;
    usleep(1000);
  }
  return unshare(CLONE_THREAD);
}

int main(void) {
  const int user = InChild(NewUser);
  if (user == EPERM || user == ENOSPC || user == ENOSYS) Skip("no user namespaces here");
  Fact(user == 0, "a user namespace");
  Fact(InChild(NewUserAndMounts) == 0, "with a mount namespace");
  const int pids = InChild(NewUserAndPids);
  Fact(pids == 0 || pids == EPERM || pids == ENOSPC, "with a PID namespace for children to come");
  Fact(InChild(UnshareThread) == 0, "CLONE_THREAD");
  Fact(InChild(UnshareMemory) == 0, "CLONE_VM");
  Fact(InChild(BadFlags) == EINVAL, "EINVAL for flags that cannot be unshared");
  const int mounts = InChild(JoinMounts);
  Fact(mounts == 0 || mounts == EPERM, "its own mount namespace, joined");
  Fact(InChild(UnshareWithThread) == EINVAL, "EINVAL for a process with two threads");
  Fact(InChild(UnshareAfterThread) == 0, "after a thread has ended");
  return Done();
}
