#include "guest.h"

static void* Next(void* argument) { return (char*)argument + 1; }

int main(void) {
  void* value = NULL;
  for (int i = 0; i < 20000; i += 2) {
    pthread_t first = Start(Next, value);
    pthread_t second = Start(Next, value);
    pthread_join(first, &value);
    pthread_join(second, NULL);
  }
  Fact(value == (void*)10000, "20000 threads created and joined");
  return Done();
}
