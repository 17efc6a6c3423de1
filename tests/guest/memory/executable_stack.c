// Linked so that its stacks can be executed (PT_GNU_STACK): main's and those of threads.
#include "fault.h"

static int RunOnStack(int value) {
  // mov eax, edi; add eax, 1; ret
  volatile unsigned char code[] = {0x89, 0xf8, 0x83, 0xc0, 0x01, 0xc3};
  return ((int (*)(int))(uintptr_t)code)(value);
}

static void* Thread(void* argument) { return (void*)(intptr_t)RunOnStack((int)(intptr_t)argument); }

int main(void) {
  CatchFaults();
  volatile int result = 0;
  Fact(!FAULTS(result = RunOnStack(5)) && result == 6, "code on main's stack");
  void* from_thread;
  pthread_join(Start(Thread, (void*)7), &from_thread);
  Fact((intptr_t)from_thread == 8, "and on a thread's");
  void (*data)(void) = (void (*)(void))Map(kPage, PROT_READ | PROT_WRITE);
  *(unsigned char*)(uintptr_t)data = 0xc3;
  Fact(FAULTS(data()) && SegvWas(SEGV_ACCERR, (void*)(uintptr_t)data),
       "other memory cannot be executed all the same");
  return Done();
}
