// Timers: what came before one was set is ordered before its handler, by signal and by thread.
// CLEAN
#include <semaphore.h>
#include <signal.h>
#include <time.h>

#include "race.h"

int values[2];
static sem_t handled;

static void OnTime(union sigval argument) {
  ++*(int*)argument.sival_ptr;
  sem_post(&handled);
}

static void OnSignal(int signal, siginfo_t* info, void* context) { OnTime(info->si_value); }

static void* Waits(void* argument) {
  while (sem_wait(&handled) != 0) {
  }
  return argument;
}

int main(void) {
  sem_init(&handled, 0, 0);
  const pthread_t other = Start(Waits, NULL);
  const struct itimerspec soon = {.it_value = {0, 20000000}};
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART, .sa_sigaction = OnSignal};
  Check(sigaction(SIGRTMIN, &action, NULL) == 0);
  sigset_t mine;
  sigemptyset(&mine);
  sigaddset(&mine, SIGRTMIN);
  pthread_sigmask(SIG_BLOCK, &mine, NULL);

  timer_t timers[2];
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
  event.sigev_value.sival_ptr = &values[0];
  Check(timer_create(CLOCK_MONOTONIC, &event, &timers[0]) == 0);
  event = (struct sigevent){.sigev_notify = SIGEV_THREAD, .sigev_notify_function = OnTime};
  event.sigev_value.sival_ptr = &values[1];
  Check(timer_create(CLOCK_MONOTONIC, &event, &timers[1]) == 0);
  for (int i = 0; i < 2; i++) {
    values[i] = 1;
    Check(timer_settime(timers[i], 0, &soon, NULL) == 0);
  }
  Join(other);
  sem_wait(&handled);
  return values[0] + values[1] == 4 ? Done() : 1;
}
