/* A handler that uses what POSIX lets it use (sem_post, write, fork) interrupts what a program does
 * all the time. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static sem_t semaphore;
static volatile sig_atomic_t signals;

static void Handle(int number) {
  char text[8];
  memcpy(text, "signal", 7);
  if (strlen(text) == 6 && number == SIGALRM) ++signals;
  sem_post(&semaphore);
}

static void* Nothing(void* argument) { return argument; }

int main(void) {
  sem_init(&semaphore, 0, 0);
  struct sigaction action = {.sa_handler = Handle, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  struct itimerval timer = {{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &timer, NULL);
  while (signals < 200) {
    pthread_t thread;
    char* text = malloc(64);
    snprintf(text, 64, "%d %s", 1, "text");
    text = realloc(text, 200);
    pthread_create(&thread, NULL, Nothing, text);
    pthread_join(thread, NULL);
    free(text);
  }
  memset(&timer, 0, sizeof(timer));
  setitimer(ITIMER_REAL, &timer, NULL);
  int posts = 0;
  while (sem_trywait(&semaphore) == 0) ++posts;
  printf("%d\n", posts == signals);
  return 0;
}
