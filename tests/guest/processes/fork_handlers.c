#include "guest.h"

static char order[32];
static void Prepare1(void) { strcat(order, "p1 "); }
static void Parent1(void) { strcat(order, "f1 "); }
static void Child1(void) { strcat(order, "c1 "); }
static void Prepare2(void) { strcat(order, "p2 "); }
static void Parent2(void) { strcat(order, "f2 "); }
static void Child2(void) { strcat(order, "c2 "); }
static void AtExit(void) { Fact(true, "exit handler of %s", order); }

int main(void) {
  pthread_atfork(Prepare1, Parent1, Child1);
  pthread_atfork(Prepare2, Parent2, Child2);
  atexit(AtExit);
  const pid_t child = fork();
  if (child == 0) exit(strcmp(order, "p2 p1 c1 c2 ") == 0 ? 0 : 1);
  Fact(Reap(child) == 0, "child's order");
  Fact(strcmp(order, "p2 p1 f1 f2 ") == 0, "parent's order");
  return Done();
}
