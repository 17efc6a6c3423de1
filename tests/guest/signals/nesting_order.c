// Handlers interrupt handlers; a mask in sigaction holds others back until the handler ends.
#include "guest.h"

static char order[64];
static void Note(const char* what) { strcat(order, what); }

static void First(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  Note("a(");
  raise(SIGUSR2);
  Note(")");
}
static void Second(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  Note("b(");
  raise(SIGALRM);
  Note(")");
}
static void Third(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  Note("c");
}

int main(void) {
  Handle(SIGUSR1, First, 0);
  Handle(SIGUSR2, Second, 0);
  Handle(SIGALRM, Third, 0);
  raise(SIGUSR1);
  Fact(strcmp(order, "a(b(c))") == 0, "nested: %s", order);
  order[0] = '\0';
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = First;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaddset(&action.sa_mask, SIGUSR2);
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
  Fact(strcmp(order, "a()b(c)") == 0, "masked: %s", order);
  return Done();
}
