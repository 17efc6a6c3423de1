#include "guest.h"

static int Descend(int depth) {
  if (depth == 0) return 1;
  const pid_t child = fork();
  if (child == 0) _exit(Descend(depth - 1));
  const int status = Reap(child);
  return WIFEXITED(status) ? WEXITSTATUS(status) + 1 : 100;
}

static void* Nothing(void* argument) { return argument; }

int main(void) {
  Fact(Descend(8) == 9, "8 generations");
  // A child may start threads, and their children too.
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 4; ++i) pthread_join(Start(Nothing, NULL), NULL);
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      for (int i = 0; i < 4; ++i) pthread_join(Start(Nothing, NULL), NULL);
      _exit(5);
    }
    _exit(WEXITSTATUS(Reap(grandchild)) + 1);
  }
  Fact(WEXITSTATUS(Reap(child)) == 6, "children and grandchildren with threads");
  return Done();
}
