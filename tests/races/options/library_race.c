// Two threads use a library's object, without debug info, at once; the library's accesses count.
// RACE any heap first second
// ALSO any first second
// BUILD O0 O2
// LINK -l:libz.so.1
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS the library is not instrumented
#include "zlib_stream.h"

static void* First(void* stream) {
  Check(inflateReset(stream) == 0);  // [first]
  return NULL;
}

static void* Second(void* stream) {
  Check(inflateReset(stream) == 0);  // [second]
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
