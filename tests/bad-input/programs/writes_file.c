// Has a race, and writes a file of its own by whichever descriptor it gets.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static int shared;

static void* Work(void* argument) {
  shared++;
  return argument;
}

int main(int count, char** arguments) {
  const int file = open(arguments[count - 1], O_CREAT | O_TRUNC | O_WRONLY, 0600);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, Work, 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
  return write(file, "data\n", 5) == 5 ? 3 : 4;
}
