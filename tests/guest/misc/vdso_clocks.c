#include "guest.h"

static int64_t Raw(clockid_t clock) {
  struct timespec now;
  syscall(SYS_clock_gettime, clock, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}
static int64_t Fast(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(void) {
  const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_MONOTONIC_RAW,
                              CLOCK_TAI};
  for (int i = 0; i < 5; ++i) {
    bool between = true;
    for (int j = 0; j < 100; ++j) {
      const int64_t before = Raw(clocks[i]);
      const int64_t fast = Fast(clocks[i]);
      const int64_t after = Raw(clocks[i]);
      between = between && before <= fast && fast <= after;
    }
    Fact(between, "clock %d: the library's time lies between two system calls'", clocks[i]);
  }
  bool coarse = true;
  for (int j = 0; j < 100; ++j) {
    const int64_t slow = Fast(CLOCK_MONOTONIC_COARSE);
    const int64_t fine = Fast(CLOCK_MONOTONIC);
    coarse = coarse && slow <= fine && fine - slow < 10000000000LL;
  }
  Fact(coarse, "the coarse clock is not ahead");
  bool forward = true;
  int64_t last = Fast(CLOCK_MONOTONIC);
  for (int j = 0; j < 100000; ++j) {
    const int64_t now = Fast(CLOCK_MONOTONIC);
    forward = forward && now >= last;
    last = now;
  }
  Fact(forward, "100000 readings never go back");
  struct timeval day;
  const time_t before = time(NULL);
  gettimeofday(&day, NULL);
  const time_t after = (time_t)(Raw(CLOCK_REALTIME) / 1000000000);
  Fact(before <= day.tv_sec && day.tv_sec <= after, "time, gettimeofday and clock_gettime agree");
  struct timespec resolution;
  Fact(clock_getres(CLOCK_MONOTONIC, &resolution) == 0 && resolution.tv_sec == 0 &&
           resolution.tv_nsec == 1,
       "resolution 1 ns");
  struct timespec none;
  Fact(clock_gettime(9999, &none) == -1 && errno == EINVAL, "no such clock: EINVAL");
  Fact(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, 16) == -1 && errno == EFAULT,
       "bad pointer: EFAULT");
  return Done();
}
