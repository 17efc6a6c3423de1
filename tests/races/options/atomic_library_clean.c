// The same where its code is said to be synchronisation: it does not race.
// CLEAN
// OPTIONS --atomic=libz.so* --explain
// SAYS trapline: all loads and stores of libz.so.1
// BUILD O0 O2
// LINK -l:libz.so.1
// TSAN-DIFFERS the library is not instrumented
#include "zlib_stream.h"

static void* First(void* stream) {
  Check(inflateReset(stream) == 0);
  return NULL;
}

static void* Second(void* stream) {
  Check(inflateReset(stream) == 0);
  return NULL;
}

int main(void) {
  void* const stream = MakeStream();
  const pthread_t one = Start(First, stream);
  const pthread_t other = Start(Second, stream);
  Join(one);
  Join(other);
  return Done();
}
