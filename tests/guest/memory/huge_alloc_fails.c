#include "guest.h"

int main(void) {
  void* volatile p = malloc((size_t)1 << 46);
  Fact(p == NULL && errno == ENOMEM, "malloc of 64 TiB fails with ENOMEM");
  struct rlimit limit;
  getrlimit(RLIMIT_DATA, &limit);
  const struct rlimit old = limit;
  limit.rlim_cur = (rlim_t)64 << 20;
  Fact(setrlimit(RLIMIT_DATA, &limit) == 0, "data limited to 64 MiB");
  p = malloc((size_t)256 << 20);
  Fact(p == NULL, "malloc of 256 MiB fails");
  p = malloc((size_t)1 << 20);
  Fact(p != NULL, "malloc of 1 MiB works");
  free(p);
  setrlimit(RLIMIT_DATA, &old);
  return Done();
}
