// Results that depend on the state of the floating point units, in threads with states of their
// own.
#include <fenv.h>

#include "guest.h"

static int good;
static void* Divide(void* argument) {
  const int mode = (int)(intptr_t)argument;
  const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
  fesetround(modes[mode]);
  volatile double one = 1;
  volatile double three = 3;
  const double expected = one / three;
  const long double expected_long = (long double)one / (long double)three;
  bool same = true;
  for (int i = 0; i < 2000; ++i) {
    same = same && one / three == expected &&
           (long double)one / (long double)three == expected_long && fegetround() == modes[mode];
    if (i % 100 == 0) sched_yield();
  }
  volatile double zero = 0;
  feclearexcept(FE_ALL_EXCEPT);
  const volatile double infinite = one / zero;
  same = same && fetestexcept(FE_DIVBYZERO) != 0 && infinite > 1e300;
  if (same) Add(&good, 1);
  return (void*)(uintptr_t)(expected < 0.33333333333333333 ? 0 : 1);
}

int main(void) {
  pthread_t threads[4];
  for (intptr_t i = 0; i < 4; ++i) threads[i] = Start(Divide, (void*)i);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  Fact(good == 4, "4 threads with 4 rounding modes");
  Fact(fegetround() == FE_TONEAREST, "main's mode is untouched");
  return Done();
}
