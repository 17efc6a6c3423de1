// Two threads meet pages that both use, from calls of different depth, in a buffer and then on each
// other's stacks, too, while signals come: registers, flags and the red zone stay what they were,
// and no store is lost.
#include "guest.h"

enum { kRounds = 800, kDepths = 6, kWords = 64, kMostTicks = 300 };

static long (*shared)[kWords];  // a row for each thread, all on one page
static long* on_stack[2];       // likewise, each on its thread's own stack
static pthread_barrier_t both;
static int ticks;
static long private_sums[2];

static void Tick(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  // Where a handler takes longer than that there would be time for nothing else.
  const struct itimerval none = {{0, 0}, {0, 0}};
  if (Add(&ticks, 1) >= kMostTicks) setitimer(ITIMER_REAL, &none, NULL);
}

// Adds 1 to *word with known values in the registers and below the stack pointer; whether they are
// still there afterwards.
__attribute__((noinline)) static bool AddAndLook(long* word) {
  long bad = 0;
  __asm__ volatile(
      "mov $1, %%eax\n\tmov $2, %%ebx\n\tmov $3, %%ecx\n\tmov $4, %%edx\n\tmov $5, %%esi\n\t"
      "mov $8, %%r8d\n\tmov $9, %%r9d\n\tmov $10, %%r10d\n\tmov $11, %%r11d\n\tmov $12, %%r12d\n\t"
      "mov $13, %%r13d\n\tmov $14, %%r14d\n\tmov $15, %%r15d\n\t"
      "movq $77, -64(%%rsp)\n\tmovq $78, -8(%%rsp)\n\t"
      "stc\n\tmov (%%rdi), %%rbx\n\tjnc 2f\n\tlea 1(%%rbx), %%rbx\n\tstd\n\tmov %%rbx, (%%rdi)\n\t"
      "mov $2, %%ebx\n\tjnc 2f\n\tpushfq\n\tcld\n\tbtq $10, (%%rsp)\n\tlea 8(%%rsp), %%rsp\n\tjnc "
      "2f\n\t"
      "cmp $1, %%rax\n\tjne 2f\n\tcmp $2, %%rbx\n\tjne 2f\n\tcmp $3, %%rcx\n\tjne 2f\n\t"
      "cmp $4, %%rdx\n\tjne 2f\n\tcmp $5, %%rsi\n\tjne 2f\n\tcmp $8, %%r8\n\tjne 2f\n\t"
      "cmp $9, %%r9\n\tjne 2f\n\tcmp $10, %%r10\n\tjne 2f\n\tcmp $11, %%r11\n\tjne 2f\n\t"
      "cmp $12, %%r12\n\tjne 2f\n\tcmp $13, %%r13\n\tjne 2f\n\tcmp $14, %%r14\n\tjne 2f\n\t"
      "cmp $15, %%r15\n\tjne 2f\n\tcmpq $77, -64(%%rsp)\n\tjne 2f\n\t"
      "xor %%edi, %%edi\n\tjmp 3f\n2: mov $1, %%edi\n\tcld\n3:"
      : "=D"(bad)
      : "D"(word)
      : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
        "memory", "cc");
  return bad == 0;
}

// `below` calls deep, in frames of different sizes.
__attribute__((noinline)) static bool At(int below, long* word) {
  volatile char room[64 * below + 16];
  room[0] = (char)below;
  return (below > 0 ? At(below - 1, word) : AddAndLook(word)) && room[0] == (char)below;
}

static void* Run(void* argument) {
  const long self = (long)argument;
  // Around it on the stack: return addresses of this thread.
  long words[kWords] = {0};
  on_stack[self] = words;
  pthread_barrier_wait(&both);
  long wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    wrong += !At(round % kDepths, &shared[self][round % kWords]);
    if (round >= kRounds / 2) wrong += !At(round % 3, &on_stack[1 - self][round % kWords]);
    for (int i = 0; i < 50; ++i) private_sums[self] += i ^ round;
  }
  pthread_barrier_wait(&both);
  long sum = 0;
  for (int i = 0; i < kWords; ++i) sum += words[i];
  Fact(sum == kRounds / 2, "every word on a stack has what the other thread wrote");
  return (void*)wrong;
}

int main(void) {
  Handle(SIGALRM, Tick, SA_RESTART);
  pthread_barrier_init(&both, NULL, 2);
  shared = (void*)Map(kPage, PROT_READ | PROT_WRITE);
  const struct itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &every, NULL);
  const pthread_t threads[2] = {Start(Run, (void*)0), Start(Run, (void*)1)};
  long wrong = 0;
  for (int i = 0; i < 2; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    wrong += (long)result;
  }
  while (Load(&ticks) == 0) SleepMs(1);  // natively all is over in no time
  const struct itimerval none = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &none, NULL);
  Fact(wrong == 0, "registers and flags are right");
  long sum = 0;
  for (int i = 0; i < kWords; ++i) sum += shared[0][i] + shared[1][i];
  Fact(sum == 2 * kRounds, "every word has what its thread wrote");
  return Done();
}
