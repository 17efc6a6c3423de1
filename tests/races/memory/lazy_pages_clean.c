// A handler of SIGSEGV makes pages writable when they are first touched.
// CLEAN
#include <signal.h>
#include <sys/mman.h>

#include "race.h"

static char* area;

static void OnFault(int signal, siginfo_t* info, void* context) {
  const long page = (long)info->si_addr & -4096l;
  Check(mprotect((void*)page, 4096, PROT_READ | PROT_WRITE) == 0);
}

static void* Works(void* argument) {
  char* const own = area + (long)argument * 4 * 4096;
  for (int i = 0; i < 4; i++) own[i * 4096 + 8] = 1;
  for (int i = 0; i < 4; i++) Check(own[i * 4096 + 8] == 1);
  return NULL;
}

int main(void) {
  struct sigaction action = {.sa_flags = SA_SIGINFO, .sa_sigaction = OnFault};
  Check(sigaction(SIGSEGV, &action, NULL) == 0);
  area = mmap(NULL, 8 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const pthread_t one = Start(Works, (void*)0);
  const pthread_t other = Start(Works, (void*)1);
  Join(one);
  Join(other);
  Check(area[8] == 1);
  return Done();
}
