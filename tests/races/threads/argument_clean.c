// Each thread works on its own element, handed over as its argument and its result.
// CLEAN
#include "race.h"

static void* Doubler(void* argument) {
  int* element = (int*)argument;
  *element *= 2;
  return element;
}

int main(void) {
  int elements[4] = {1, 2, 3, 4};
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) threads[i] = Start(Doubler, &elements[i]);
  int sum = 0;
  for (int i = 0; i < 4; i++) {
    void* result;
    Check(pthread_join(threads[i], &result) == 0);
    sum += *(int*)result;
  }
  return sum == 20 ? Done() : 1;
}
