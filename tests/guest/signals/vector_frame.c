// The vector state in the signal frame can be read and changed.
#include "guest.h"

static bool read_good;
static bool magic_good;
static double wanted;

static void Change(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  ucontext_t* user = context;
  struct _libc_fpstate* state = user->uc_mcontext.fpregs;
  read_good = memcmp(&state->_xmm[8], "in register xmm8", 16) == 0 && state->mxcsr == 0x1f80;
  memcpy(&state->_xmm[8], "from the handler", 16);
  state->mxcsr = 0x5f80;
  // The software-reserved bytes name the extended area; it ends in a magic number.
  const uint32_t* reserved = (const uint32_t*)(const void*)((const char*)state + 464);
  magic_good = true;
  if (reserved[0] == 0x46505853) {
    uint32_t end;
    memcpy(&end, (const char*)state + reserved[1] - 4, 4);
    magic_good = end == 0x46505845 && reserved[4] <= reserved[1];
  }
  memcpy(&state->_xmm[9], &wanted, sizeof(wanted));
}

int main(void) {
  Handle(SIGILL, Change, 0);
  char text[16];
  memcpy(text, "in register xmm8", 16);
  unsigned mxcsr = 0;
  const unsigned normal = 0x1f80;
  double nine = 0;
  wanted = 2.5;
  // The handler does not advance RIP, so the ud2 is jumped over by a second one: patch by retry is
  // not needed.
  const long skip = 2;
  (void)skip;
  Handle(SIGUSR1, Change, 0);
  const long pid = getpid();
  long result = SYS_kill;
  __asm__ volatile(
      "movdqu (%[text]), %%xmm8\n\t"
      "syscall\n\t"
      "movdqu %%xmm8, (%[text])\n\t"
      "movsd %%xmm9, (%[nine])\n\t"
      "stmxcsr (%[mxcsr])\n\t"
      "ldmxcsr (%[normal])"
      : "+a"(result)
      : "D"(pid), "S"((long)SIGUSR1), [text] "r"(text), [nine] "r"(&nine), [mxcsr] "r"(&mxcsr),
        [normal] "r"(&normal)
      : "rcx", "r11", "memory", "xmm8", "xmm9");
  Fact(result == 0, "signalled");
  Fact(read_good, "the handler read xmm8 and mxcsr in the frame");
  Fact(memcmp(text, "from the handler", 16) == 0, "its change to xmm8 holds after return");
  Fact(nine == 2.5, "its change to xmm9 too");
  Fact(mxcsr == 0x5f80, "its change to mxcsr too");
  Fact(magic_good, "the extended area is marked as it should be");
  return Done();
}
