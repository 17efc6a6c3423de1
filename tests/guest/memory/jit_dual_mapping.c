// Code written through one mapping of a memfd and executed through another, by several threads.
#include "emit.h"

static unsigned char* writable;
static unsigned char* executable;
static int published;
static int good;

static void* Run(void* argument) {
  (void)argument;
  int done = 0;
  while (done < 200) {
    const int now = Load(&published);
    while (done < now) {
      if (((Function)(void*)(executable + done * 16))() == done) Add(&good, 1);
      ++done;
    }
    sched_yield();
  }
  return NULL;
}

int main(void) {
  const int fd = memfd_create("code", MFD_CLOEXEC);
  if (ftruncate(fd, kPage) != 0) return 1;
  writable = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  executable = mmap(NULL, kPage, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
  Fact(executable != MAP_FAILED, "mapped for writing and for executing");
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) threads[i] = Start(Run, NULL);
  for (int i = 0; i < 200; ++i) {
    Emit(writable + i * 16, i);
    Store(&published, i + 1);
  }
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  Fact(good == 600, "3 threads ran 200 functions while they were written");
  return Done();
}
