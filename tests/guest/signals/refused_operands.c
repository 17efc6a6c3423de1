// Memory operands that the processor refuses, of instructions that KVM's emulator does not know:
// SIGSEGV with SI_KERNEL, SIGBUS where the stack segment is used. What the processor lacks is an
// invalid instruction whatever its address.
#include <cpuid.h>

#include "fault.h"

static _Alignas(64) char memory[256];
static char* const misaligned = memory + 8;
static char* const impossible = (char*)0x8000000000000000;
static char* const just_impossible = (char*)0x0000800000000000;

static void Expect(bool faulted, int signal, unsigned long vector, const char* what) {
  const bool refused = last_fault.code == SI_KERNEL && last_fault.address == 0 &&
                       last_fault.vector == vector && last_fault.error == 0;
  Fact(faulted && last_fault.signal == signal && (signal == SIGILL || refused), "%s: signal %d",
       what, signal);
}

// An instruction with `address` in rax.
#define REFUSED(available, text, address)                          \
  Expect(FAULTS(__asm__ volatile(text                              \
                                 :                                 \
                                 : "a"(address)                    \
                                 : "memory", "rcx", "rdx", "cc")), \
         (available) ? SIGSEGV : SIGILL, 13, text " of " #address)
// One whose stack pointer is no address.
#define ON_STACK(text)                                                                    \
  __asm__ volatile("mov %%rsp, %%rcx\n\tmov %%rax, %%rsp\n\t" text "\n\tmov %%rcx, %%rsp" \
                   :                                                                      \
                   : "a"(impossible)                                                      \
                   : "memory", "rcx", "cc")
#define REFUSED_ON_STACK(available, text) \
  Expect(FAULTS(ON_STACK(text)), (available) ? SIGBUS : SIGILL, 12, text)
#define TAKEN(available, text)                                     \
  Fact(FAULTS(__asm__ volatile(text                                \
                               :                                   \
                               : "a"(misaligned)                   \
                               : "memory", "cc")) == !(available), \
       text " need not be aligned")

static void* RunAll(void* argument) {
  __builtin_cpu_init();
  const bool ssse3 = __builtin_cpu_supports("ssse3");
  const bool sse42 = __builtin_cpu_supports("sse4.2");
  const bool aes = __builtin_cpu_supports("aes");
  const bool bmi2 = __builtin_cpu_supports("bmi2");
  const bool avx = __builtin_cpu_supports("avx");
  const bool avx512 = __builtin_cpu_supports("avx512f");

  REFUSED(true, "movaps %%xmm0, (%%rax)", misaligned);
  REFUSED(true, "paddd (%%rax), %%xmm0", misaligned);
  REFUSED(ssse3, "pshufb (%%rax), %%xmm0", misaligned);
  REFUSED(aes, "aesenc (%%rax), %%xmm0", misaligned);
  REFUSED(avx, "vmovaps %%xmm0, (%%rax)", misaligned);
  REFUSED(avx, "vmovapd (%%rax), %%ymm0", misaligned);
  REFUSED(avx, "vmovdqa (%%rax), %%ymm0", misaligned);
  REFUSED(avx, "vmovntps %%ymm0, (%%rax)", misaligned);
  REFUSED(avx, "vmovntdq %%ymm0, (%%rax)", misaligned);
  REFUSED(avx, "vmovntdqa (%%rax), %%xmm0", misaligned);
  REFUSED(avx512, "vmovaps %%zmm0, (%%rax)", misaligned);
  REFUSED(avx512, "kxnorw %%k1, %%k1, %%k1; vmovdqa32 (%%rax), %%zmm0%{%%k1%}", misaligned);
  REFUSED(avx512, "vmovdqa64 %%zmm16, (%%rax)", misaligned);
  TAKEN(ssse3, "lddqu (%%rax), %%xmm0");
  TAKEN(sse42, "pcmpistri $0, (%%rax), %%xmm0");
  TAKEN(avx, "vmovups %%ymm0, (%%rax)");
  TAKEN(avx, "vaddps (%%rax), %%ymm0, %%ymm0");
  TAKEN(avx512, "vmovdqu64 (%%rax), %%zmm0");

  REFUSED(true, "paddd (%%rax), %%xmm0", impossible);
  REFUSED(ssse3, "pshufb (%%rax), %%xmm0", just_impossible);
  REFUSED(sse42, "crc32b (%%rax), %%ecx", impossible);
  REFUSED(bmi2, "mulx (%%rax), %%rcx, %%rdx", impossible);
  REFUSED(avx, "vmovups (%%rax), %%ymm0", impossible);
  REFUSED(avx, "vmovdqu (%%rax), %%xmm0", just_impossible);
  REFUSED(avx, "vmovss (%%rax), %%xmm0", just_impossible);
  REFUSED(avx512, "vaddps (%%rax), %%zmm0, %%zmm0", impossible);

  REFUSED_ON_STACK(true, "mov (%%rsp), %%eax");
  REFUSED_ON_STACK(true, "movups 8(%%rsp), %%xmm0");
  REFUSED_ON_STACK(avx, "vmovups (%%rsp), %%ymm0");
  REFUSED_ON_STACK(avx512, "vmovups (%%rsp), %%zmm0");

  Expect(FAULTS(__asm__ volatile("ud2")), SIGILL, 6, "ud2");
  return argument;
}

// Handlers need one where rsp is no address.
static void UseAlternateStack(void) {
  static _Thread_local _Alignas(16) char stack[32768];
  const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  if (sigaltstack(&alternate, NULL) != 0) _exit(94);
}

static void* RunThread(void* argument) {
  UseAlternateStack();
  return RunAll(argument);
}

int main(void) {
  CatchFaults();
  const int signals[] = {SIGSEGV, SIGBUS, SIGILL};
  for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); ++i)
    Handle(signals[i], OnFault, SA_ONSTACK);
  UseAlternateStack();
  if (FAULTS(ON_STACK("mov (%%rsp), %%eax")) && last_fault.signal == SIGSEGV)
    Skip("this processor does not tell stack faults from others (QEMU's emulated ones)");
  pthread_join(Start(RunThread, NULL), NULL);
  RunAll(NULL);
  return Done();
}
