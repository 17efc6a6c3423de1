#include "guest.h"

static void Note(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  Fact(true, "the handler of SIGABRT ran");
}

int main(void) {
  NoCore();
  Handle(SIGABRT, Note, 0);
  abort();
}
