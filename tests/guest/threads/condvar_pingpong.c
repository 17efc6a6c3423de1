#include "guest.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int ball;

static void* Pong(void* argument) {
  const int parity = (int)(intptr_t)argument;
  for (int i = 0; i < 1000; ++i) {
    pthread_mutex_lock(&mutex);
    while (ball % 2 != parity) pthread_cond_wait(&condition, &mutex);
    ++ball;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

int main(void) {
  pthread_t other = Start(Pong, (void*)1);
  Pong((void*)0);
  pthread_join(other, NULL);
  Fact(ball == 2000, "2000 hand-overs");
  struct timespec past = {1, 0};
  pthread_mutex_lock(&mutex);
  Fact(pthread_cond_timedwait(&condition, &mutex, &past) == ETIMEDOUT,
       "a time in the past is ETIMEDOUT");
  const int64_t start = NowNs();
  struct timespec soon;
  clock_gettime(CLOCK_REALTIME, &soon);
  soon.tv_nsec += 20000000;
  if (soon.tv_nsec >= 1000000000) {
    soon.tv_nsec -= 1000000000;
    ++soon.tv_sec;
  }
  Fact(pthread_cond_timedwait(&condition, &mutex, &soon) == ETIMEDOUT, "timed out");
  Fact(NowNs() - start >= 15000000, "not before its time");
  pthread_mutex_unlock(&mutex);
  return Done();
}
