// realloc moves the block while another thread writes to it.
// RACE any heap a b
// MAY-MISS shared: each place runs once
#include "race.h"

static char* block;
static char* moved;

static void* User(void* argument) {
  char* mine = (char*)argument;
  mine[40] = 1;  // [a]
  return NULL;
}

static void* Mover(void* argument) {
  moved = (char*)realloc(argument, 200000);  // [b]
  return NULL;
}

int main(void) {
  block = (char*)malloc(64);
  const pthread_t user = Start(User, block);
  const pthread_t mover = Start(Mover, block);
  Join(user);
  Join(mover);
  free(moved);
  return Done();
}
