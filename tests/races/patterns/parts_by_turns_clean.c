// Each turn comes after the one before, by joins and births, whoever has which part: its last
// thread, the other one or the first thread of all, whether or not another one lives all along. In
// a turn one hands words of its part to the other.
// CLEAN
// SECONDS 60
#include "parts_by_turns.h"

static long turns;

static void* Own(void* argument) {
  Work((int)(long)argument, 1);
  return argument;
}

static void* Other(void* argument) {
  Work(1 - (int)(long)argument, 1);
  return argument;
}

static void* HandOn(void* argument) {
  long* const given = &parts[0][1000];
  long* const flag = &parts[0][kWords - 1];
  if (argument == NULL) {
    __atomic_store_n(flag, 0, __ATOMIC_RELAXED);
    for (int word = 1; word < kWords - 1; word++) parts[0][word] += turns;
    *given = turns;
    __atomic_store_n(flag, -turns, __ATOMIC_RELEASE);
  } else {
    Work(1, 1);
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != -turns) usleep(1000);
    Check(*given == turns);
    *given = 0;
  }
  return argument;
}

static void ByTurns(void) {
  for (int i = 0; i < 4; i++) {
    turns++;
    Turn(Own);
    if (i % 2 == 1) Work(0, 1);
    Turn(HandOn);
    if (i % 2 == 0) Turn(Other);
  }
}

static void* Waits(void* argument) {
  pthread_mutex_t* const mutex = argument;
  pthread_mutex_lock(mutex);
  pthread_mutex_unlock(mutex);
  return argument;
}

int main(void) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  ByTurns();
  pthread_mutex_lock(&mutex);
  const pthread_t waits = Start(Waits, &mutex);
  ByTurns();
  pthread_mutex_unlock(&mutex);
  Join(waits);
  return Done();
}
