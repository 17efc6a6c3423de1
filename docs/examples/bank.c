// Two tellers book on one account. One of them forgets the lock.
//
// cc -g -O1 -pthread bank.c -o bank && trapline run -- ./bank
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long balance = 100;

static void* Deposit(void* amount) {
  pthread_mutex_lock(&lock);
  balance += *(const long*)amount;
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void* Withdraw(void* amount) {
  if (balance >= *(const long*)amount) balance -= *(const long*)amount;
  return NULL;
}

int main(void) {
  long amount = 30;
  pthread_t tellers[2];
  pthread_create(&tellers[0], NULL, Deposit, &amount);
  pthread_create(&tellers[1], NULL, Withdraw, &amount);
  for (int i = 0; i < 2; ++i) pthread_join(tellers[i], NULL);
  printf("balance: %ld\n", balance);
  return 0;
}
