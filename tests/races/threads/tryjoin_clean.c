// pthread_tryjoin_np and pthread_timedjoin_np order as pthread_join does, when they succeed.
// CLEAN
#include <time.h>

#include "race.h"

int first_value;
int second_value;

static void* First(void* argument) {
  first_value = 1;
  return argument;
}

static void* Second(void* argument) {
  second_value = 1;
  return argument;
}

int main(void) {
  const pthread_t first = Start(First, NULL);
  const pthread_t second = Start(Second, NULL);
  while (pthread_tryjoin_np(first, NULL) != 0) usleep(1000);
  first_value++;
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 20;
  Check(pthread_timedjoin_np(second, NULL, &end) == 0);
  second_value++;
  return first_value + second_value == 4 ? Done() : 1;
}
