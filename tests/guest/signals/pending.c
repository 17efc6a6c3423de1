#include "guest.h"

static char order[64];
static void Note(int signal, siginfo_t* info, void* context) {
  (void)info, (void)context;
  char name[8];
  snprintf(name, sizeof(name), "%d ", signal);
  strcat(order, name);
}

int main(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = Note;
  action.sa_flags = SA_SIGINFO;
  sigfillset(&action.sa_mask);
  const int signals[] = {SIGRTMIN + 2, SIGUSR2, SIGUSR1, SIGRTMIN, SIGUSR2, SIGRTMIN, SIGTERM};
  for (int i = 0; i < 7; ++i) sigaction(signals[i], &action, NULL);
  for (int i = 0; i < 7; ++i) kill(getpid(), signals[i]);
  sigset_t pending;
  sigpending(&pending);
  Fact(sigismember(&pending, SIGUSR1) && sigismember(&pending, SIGRTMIN) &&
           !sigismember(&pending, SIGALRM),
       "pending");
  Fact(order[0] == '\0', "none delivered while blocked");
  sigprocmask(SIG_UNBLOCK, &all, NULL);
  Fact(true, "delivered: %s", order);
  Fact(strcmp(order, "10 12 15 34 34 36 ") == 0,
       "lowest first, standard ones once, realtime ones queued");
  sigpending(&pending);
  Fact(sigisemptyset(&pending), "none pending");
  return Done();
}
