// A busy loop holds values in the vector, x87 and control registers while a timer's handler
// destroys them all.
#include <cpuid.h>

#include "guest.h"

static int ticks;

__attribute__((target("avx512f"))) static void Destroy512(void) {
  __asm__ volatile(
      "vpternlogd $255, %%zmm0, %%zmm0, %%zmm0\n\tvmovdqa64 %%zmm0, %%zmm7\n\tvmovdqa64 %%zmm0, "
      "%%zmm15\n\t"
      "vmovdqa64 %%zmm0, %%zmm16\n\tvmovdqa64 %%zmm0, %%zmm31\n\tkxnorw %%k0, %%k0, %%k1\n\tkxnorw "
      "%%k0, %%k0, %%k7"
      :
      :
      : "memory");
}
__attribute__((target("avx"))) static void Destroy256(void) {
  __asm__ volatile(
      "vxorps %%ymm0, %%ymm0, %%ymm0\n\tvxorps %%ymm7, %%ymm7, %%ymm7\n\tvxorps %%ymm15, %%ymm15, "
      "%%ymm15"
      :
      :
      : "memory");
}
static int level;  // 1 xmm, 2 ymm, 3 zmm

static void Tick(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  const unsigned mxcsr = 0x1f80;
  const unsigned short control = 0x37f;
  __asm__ volatile(
      "pcmpeqd %%xmm0, %%xmm0\n\tpcmpeqd %%xmm7, %%xmm7\n\tpcmpeqd %%xmm15, %%xmm15\n\tldmxcsr "
      "%0\n\t"
      "fninit\n\tfldcw %1\n\tfldpi\n\tfldpi\n\tfldpi"
      :
      : "m"(mxcsr), "m"(control)
      : "xmm0", "xmm7", "xmm15");
  if (level >= 2) Destroy256();
  if (level >= 3) Destroy512();
  Add(&ticks, 1);
}

struct State {
  _Alignas(64) unsigned char vector[5][64];
  unsigned mxcsr;
  unsigned short control;
  double x87[2];
  unsigned short mask[2];
};

#define SPIN "1: cmpl $8, %[ticks]\n\tjl 1b\n\t"
#define SET_OTHER "ldmxcsr %[mxcsr]\n\tfninit\n\tfldcw %[control]\n\tfldl %[a]\n\tfldl %[b]\n\t"
#define GET_OTHER "stmxcsr %[mxcsr]\n\tfnstcw %[control]\n\tfstpl %[b]\n\tfstpl %[a]\n\tfninit\n\t"
#define OPERANDS                                                                                                 \
  : [mxcsr] "+m"(state->mxcsr), [control] "+m"(state->control), [a] "+m"(state->x87[0]), [b] "+m"(state->x87[1]) \
  : [ticks] "m"(ticks), [v] "r"(state->vector), [k] "r"(state->mask)                                       \
  : "memory", "cc", "xmm0", "xmm7", "xmm15"

static void Spin128(struct State* state) {
  __asm__ volatile(
      "movdqa (%[v]), %%xmm0\n\tmovdqa 64(%[v]), %%xmm7\n\tmovdqa 128(%[v]), %%xmm15\n\t" SET_OTHER
          SPIN
      "movdqa %%xmm0, (%[v])\n\tmovdqa %%xmm7, 64(%[v])\n\tmovdqa %%xmm15, 128(%[v])\n\t" GET_OTHER
          OPERANDS);
}
__attribute__((target("avx"))) static void Spin256(struct State* state) {
  __asm__ volatile(
      "vmovdqa (%[v]), %%ymm0\n\tvmovdqa 64(%[v]), %%ymm7\n\tvmovdqa 128(%[v]), "
      "%%ymm15\n\t" SET_OTHER SPIN
      "vmovdqa %%ymm0, (%[v])\n\tvmovdqa %%ymm7, 64(%[v])\n\tvmovdqa %%ymm15, "
      "128(%[v])\n\t" GET_OTHER OPERANDS);
}
__attribute__((target("avx512f"))) static void Spin512(struct State* state) {
  __asm__ volatile(
      "vmovdqa64 (%[v]), %%zmm0\n\tvmovdqa64 64(%[v]), %%zmm7\n\tvmovdqa64 128(%[v]), %%zmm15\n\t"
      "vmovdqa64 192(%[v]), %%zmm16\n\tvmovdqa64 256(%[v]), %%zmm31\n\tkmovw (%[k]), %%k1\n\tkmovw "
      "2(%[k]), %%k7\n\t" SET_OTHER SPIN
      "vmovdqa64 %%zmm0, (%[v])\n\tvmovdqa64 %%zmm7, 64(%[v])\n\tvmovdqa64 %%zmm15, 128(%[v])\n\t"
      "vmovdqa64 %%zmm16, 192(%[v])\n\tvmovdqa64 %%zmm31, 256(%[v])\n\tkmovw %%k1, (%[k])\n\tkmovw "
      "%%k7, 2(%[k])\n\t" GET_OTHER OPERANDS);
}

// Fills, spins until 8 ticks came, compares the first `width` bytes of each register.
static void Try(const char* name, int at_level, void (*spin)(struct State*), size_t width) {
  static struct State before;
  static struct State after;
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 64; ++j) before.vector[i][j] = (unsigned char)(i * 64 + j + 1);
  }
  before.mxcsr = 0x7f80;    // round to zero
  before.control = 0x0f7f;  // round to zero
  before.x87[0] = 1.25;
  before.x87[1] = -7.5;
  before.mask[0] = 0x1234;
  before.mask[1] = 0xabcd;
  after = before;
  level = at_level;
  Store(&ticks, 0);
  spin(&after);
  bool vectors = true;
  for (int i = 0; i < (at_level == 3 ? 5 : 3); ++i)
    vectors = vectors && memcmp(before.vector[i], after.vector[i], width) == 0;
  Fact(vectors, "%s registers survive 8 handlers", name);
  Fact(after.mxcsr == before.mxcsr && after.control == before.control, "%s: control words too",
       name);
  Fact(after.x87[0] == 1.25 && after.x87[1] == -7.5, "%s: x87 too", name);
  Fact(after.mask[0] == 0x1234 && after.mask[1] == 0xabcd, "%s: mask registers too", name);
}

int main(void) {
  Handle(SIGALRM, Tick, SA_RESTART);
  const struct itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &every, NULL);
  Try("xmm", 1, Spin128, 16);
  // The lines are the same on a machine without; there the smaller registers are tried again.
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx")) {
    Try("ymm", 2, Spin256, 32);
  } else {
    Try("ymm", 1, Spin128, 16);
  }
  if (__builtin_cpu_supports("avx512f")) {
    Try("zmm", 3, Spin512, 64);
  } else {
    Try("zmm", 1, Spin128, 16);
  }
  return Done();
}
