#include <asm/prctl.h>
#include <sys/auxv.h>

#include "fault.h"

static uint64_t block[4] = {0x1111, 0x2222, 0x3333, 0x4444};

static void* OtherThread(void* argument) {
  unsigned long fs = 0;
  syscall(SYS_arch_prctl, ARCH_GET_FS, &fs);
  unsigned long gs = 1;
  syscall(SYS_arch_prctl, ARCH_GET_GS, &gs);
  return (void*)(intptr_t)(fs != (unsigned long)argument && fs != 0 && gs == 0);
}

int main(void) {
  CatchFaults();
  unsigned long fs = 0;
  unsigned long word = 1;
  Fact(syscall(SYS_arch_prctl, ARCH_GET_FS, &fs) == 0 && fs == *(unsigned long*)fs,
       "FS points to the thread block, which points to itself");
  __asm__ volatile("mov %%fs:0, %0" : "=r"(word));
  Fact(word == fs, "as the segment register has it");
  void* other;
  pthread_join(Start(OtherThread, (void*)fs), &other);
  Fact(other != NULL, "another thread has another FS, and no GS");
  Fact(syscall(SYS_arch_prctl, ARCH_SET_GS, block) == 0, "GS set");
  __asm__ volatile("mov %%gs:8, %0" : "=r"(word));
  Fact(word == 0x2222, "and used");
  for (int i = 0; i < 100; ++i) sched_yield();
  SleepMs(1);
  __asm__ volatile("mov %%gs:16, %0" : "=r"(word));
  Fact(word == 0x3333, "it stays over system calls");
  unsigned long gs = 0;
  Fact(syscall(SYS_arch_prctl, ARCH_GET_GS, &gs) == 0 && gs == (unsigned long)block,
       "and is told back");
  const pid_t child = fork();
  if (child == 0) {
    __asm__ volatile("mov %%gs:24, %0" : "=r"(word));
    _exit(word == 0x4444 ? 0 : 1);
  }
  Fact(Reap(child) == 0, "a child inherits it");
  Fact(syscall(SYS_arch_prctl, ARCH_SET_GS, 0x800000000000) == -1 && errno == EPERM,
       "no user address: EPERM");
  Fact(syscall(SYS_arch_prctl, 0x9999, 0) == -1 && errno == EINVAL, "unknown code: EINVAL");
  bool instructions = true;
  if (getauxval(AT_HWCAP2) & 2) {
    unsigned long value = 0;
    instructions = !FAULTS(__asm__ volatile("rdfsbase %0" : "=r"(value))) && value == fs;
    instructions = instructions &&
                   !FAULTS(__asm__ volatile("rdgsbase %0"
                                            : "=r"(value))) &&
                   value == (unsigned long)block;
    instructions = instructions && !FAULTS(__asm__ volatile("wrgsbase %0" : : "r"(block + 1)));
    __asm__ volatile("mov %%gs:0, %0" : "=r"(word));
    instructions = instructions && word == 0x2222;
    syscall(SYS_arch_prctl, ARCH_GET_GS, &gs);
    instructions = instructions && gs == (unsigned long)(block + 1);
  }
  Fact(instructions, "rdfsbase, rdgsbase and wrgsbase work if the auxiliary vector says so");
  return Done();
}
