// The 128 bytes below the stack pointer belong to the interrupted function.
#include "guest.h"

static int ticks;
static void Tick(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  volatile char clobber[2000];
  for (size_t i = 0; i < sizeof(clobber); ++i) clobber[i] = (char)0xee;
  Add(&ticks, 1);
}

__attribute__((noinline)) static long LeafWithRedZone(void) {
  long bad;
  __asm__ volatile(
      "movq $0x1111, -8(%%rsp)\n\tmovq $0x2222, -64(%%rsp)\n\tmovq $0x3333, -128(%%rsp)\n"
      "1: xor %%edi, %%edi\n\t"
      "cmpq $0x1111, -8(%%rsp)\n\tjne 2f\n\tcmpq $0x2222, -64(%%rsp)\n\tjne 2f\n\tcmpq $0x3333, "
      "-128(%%rsp)\n\tjne 2f\n\t"
      "cmpl $20, (%%rsi)\n\tjl 1b\n\tjmp 3f\n"
      "2: mov $1, %%edi\n"
      "3:"
      : "=D"(bad)
      : "S"(&ticks)
      : "memory", "cc");
  return bad;
}

int main(void) {
  Handle(SIGALRM, Tick, SA_RESTART);
  const struct itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &every, NULL);
  Fact(LeafWithRedZone() == 0, "the red zone survives 20 handlers");
  return Done();
}
