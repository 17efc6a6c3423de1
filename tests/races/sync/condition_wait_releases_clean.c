// What a thread wrote before a wait is ordered by the mutex that the wait releases.
// CLEAN
#include "race.h"

int value;
int turn;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void TakeTurns(int mine) {
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < 3; i++) {
    while (turn != mine) pthread_cond_wait(&condition, &mutex);
    value++;
    turn = !mine;
    pthread_cond_signal(&condition);
  }
  pthread_mutex_unlock(&mutex);
}

static void* First(void* argument) {
  TakeTurns(0);
  return argument;
}

static void* Second(void* argument) {
  TakeTurns(1);
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return value == 6 ? Done() : 1;
}
