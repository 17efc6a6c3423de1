// A library whose file self_test takes away while it is loaded.
extern "C" [[gnu::noinline]] int CallBack(int (*function)(void*), void* argument) {
  volatile char room[200];
  room[0] = 1;
  return function(argument) + room[0];
}
