#include "guest.h"

static void* Nothing(void* argument) { return argument; }

int main(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = (rlim_t)512 << 20;
  Fact(setrlimit(RLIMIT_AS, &limit) == 0, "address space limited to 512 MiB");
  void* volatile p = malloc((size_t)1 << 30);
  Fact(p == NULL && errno == ENOMEM, "malloc of 1 GiB fails");
  p = malloc((size_t)100 << 20);
  Fact(p != NULL, "malloc of 100 MiB works");
  free(p);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 20);
  pthread_t thread;
  Fact(pthread_create(&thread, &attributes, Nothing, NULL) == 0 && pthread_join(thread, NULL) == 0,
       "so does a thread");
  pthread_attr_setstacksize(&attributes, (size_t)1 << 30);
  Fact(pthread_create(&thread, &attributes, Nothing, NULL) == EAGAIN,
       "one with a stack of 1 GiB: EAGAIN");
  const pid_t child = fork();
  if (child == 0) _exit(malloc((size_t)1 << 30) == NULL ? 0 : 1);
  Fact(Reap(child) == 0, "a child inherits the limit");
  struct rlimit again;
  Fact(getrlimit(RLIMIT_AS, &again) == 0 && again.rlim_cur == limit.rlim_cur,
       "the limit is told back");
  // Which is taken for no limit.
  limit = (struct rlimit){0, RLIM_INFINITY};
  Fact(setrlimit(RLIMIT_DATA, &limit) == 0, "no data at all");
  Fact(
      mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED,
      "but a mapping");
  return Done();
}
