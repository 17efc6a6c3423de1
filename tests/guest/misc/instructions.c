#include <cpuid.h>
#include <x86intrin.h>

#include "fault.h"

int main(void) {
  CatchFaults();
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  bool executed = !FAULTS(__cpuid(0, a, b, c, d));
  Fact(executed && a >= 1 && (b | c | d) != 0, "cpuid leaf 0");
  executed = !FAULTS(__cpuid(1, a, b, c, d));
  Fact(executed && (d & (1U << 26)), "cpuid leaf 1 has SSE2");
  const bool xsave = (c & (1U << 27)) != 0;
  bool consistent = true;
  if (xsave) {
    unsigned low = 0;
    unsigned high = 0;
    consistent = !FAULTS(__asm__ volatile("xgetbv"
                                          : "=a"(low), "=d"(high)
                                          : "c"(0))) &&
                 (low & 3) == 3;
    if (c & (1U << 28)) consistent = consistent && (low & 4);
  }
  Fact(consistent, "xgetbv agrees with cpuid");
  bool forward = true;
  uint64_t last = __rdtsc();
  for (int i = 0; i < 10000; ++i) {
    const uint64_t now = __rdtsc();
    forward = forward && now >= last;
    last = now;
  }
  Fact(forward, "rdtsc does not go back");
  const uint64_t start = __rdtsc();
  SleepMs(5);
  Fact(__rdtsc() > start + 1000, "rdtsc advances");
  __builtin_cpu_init();
  bool extensions = true;
  if (__builtin_cpu_supports("avx2"))
    extensions = extensions && !FAULTS(__asm__ volatile("vpaddd %%ymm0, %%ymm1, %%ymm2"
                                                        :
                                                        :
                                                        : "xmm2"));
  if (__builtin_cpu_supports("popcnt"))
    extensions = extensions && !FAULTS(__asm__ volatile("popcnt %%rax, %%rbx" : : : "rbx"));
  if (__builtin_cpu_supports("avx512f"))
    extensions = extensions && !FAULTS(__asm__ volatile("vpaddd %%zmm0, %%zmm1, %%zmm2"
                                                        :
                                                        :
                                                        : "xmm2"));
  if (__builtin_cpu_supports("sse4.2"))
    extensions = extensions && !FAULTS(__asm__ volatile("crc32q %%rax, %%rbx" : : : "rbx"));
  Fact(extensions, "what the processor says it has can be executed");
  unsigned long selector = 0;
  __asm__ volatile("mov %%cs, %0" : "=r"(selector));
  Fact(selector == 0x33, "CS is 0x33");
  __asm__ volatile("mov %%ss, %0" : "=r"(selector));
  Fact(selector == 0x2b, "SS is 0x2b");
  return Done();
}
