// A limit of the process, by which threads tell each other something that orders nothing.
#ifndef TRAPLINE_TESTS_RACES_ANNOUNCE_H_
#define TRAPLINE_TESTS_RACES_ANNOUNCE_H_

#include <sys/resource.h>

#include "race.h"

__attribute__((unused)) static rlim_t Announced(void) {
  struct rlimit limit;
  Check(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  return limit.rlim_cur;
}

__attribute__((unused)) static void Announce(void) {
  struct rlimit limit;
  Check(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur--;
  Check(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

// Until something has been announced since Announced() was `before`.
__attribute__((unused)) static void AwaitAnnouncement(rlim_t before) {
  while (Announced() == before) usleep(1000);
}

#endif  // TRAPLINE_TESTS_RACES_ANNOUNCE_H_
