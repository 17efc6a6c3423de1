// Two accounts with a mutex each, locked in the order of their addresses.
// CLEAN
#include "race.h"

struct Account {
  pthread_mutex_t mutex;
  int balance;
} accounts[2] = {{PTHREAD_MUTEX_INITIALIZER, 10}, {PTHREAD_MUTEX_INITIALIZER, 10}};

static void Transfer(struct Account* from, struct Account* to, int amount) {
  struct Account* first = from < to ? from : to;
  struct Account* second = from < to ? to : from;
  pthread_mutex_lock(&first->mutex);
  pthread_mutex_lock(&second->mutex);
  from->balance -= amount;
  to->balance += amount;
  pthread_mutex_unlock(&second->mutex);
  pthread_mutex_unlock(&first->mutex);
}

static void* There(void* argument) {
  for (int i = 0; i < 3; i++) Transfer(&accounts[0], &accounts[1], i);
  return argument;
}

static void* Back(void* argument) {
  for (int i = 0; i < 3; i++) Transfer(&accounts[1], &accounts[0], i);
  return argument;
}

int main(void) {
  RunTwo(There, Back);
  return accounts[0].balance == 10 ? Done() : 1;
}
