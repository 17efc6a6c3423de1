#include "guest.h"

static int named;
static int done;

static void* Named(void* argument) {
  (void)argument;
  pthread_setname_np(pthread_self(), "worker-one");
  Store(&named, (int)syscall(SYS_gettid));
  WaitUntil(&done, 1);
  return NULL;
}

int main(void) {
  pthread_t thread = Start(Named, NULL);
  while (Load(&named) == 0) sched_yield();
  char name[64] = "";
  Fact(pthread_getname_np(thread, name, sizeof(name)) == 0 && strcmp(name, "worker-one") == 0,
       "name of another thread: %s", name);
  char path[64];
  snprintf(path, sizeof(path), "/proc/self/task/%d/comm", Load(&named));
  FILE* file = fopen(path, "r");
  name[0] = '\0';
  if (file != NULL && fgets(name, sizeof(name), file) == NULL) name[0] = '?';
  Fact(strcmp(name, "worker-one\n") == 0, "/proc/self/task/N/comm agrees");
  if (file != NULL) fclose(file);
  Fact(pthread_setname_np(thread, "this name is too long") == ERANGE, "a long name is ERANGE");
  Fact(pthread_setname_np(thread, "renamed") == 0, "renamed from outside");
  pthread_getname_np(thread, name, sizeof(name));
  Fact(strcmp(name, "renamed") == 0, "new name: %s", name);
  Store(&done, 1);
  pthread_join(thread, NULL);
  return Done();
}
