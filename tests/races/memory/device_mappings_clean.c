// What is mapped from /dev/zero is other memory each time.
// CLEAN
#include <fcntl.h>
#include <sys/mman.h>

#include "race.h"

static int device;

static void* Worker(void* argument) {
  int* const own = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, device, 0);
  Check(own != MAP_FAILED);
  for (int i = 0; i < 50; i++) {
    own[0] = i;
    own[1024] = own[0] + 1;
    if (i % 10 == 0) usleep(1000);
  }
  return own;
}

int main(void) {
  device = open("/dev/zero", O_RDWR);
  Check(device >= 0);
  RunTwo(Worker, Worker);
  return Done();
}
