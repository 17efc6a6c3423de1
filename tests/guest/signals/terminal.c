// A terminal of its own: Ctrl-C, Ctrl-\, Ctrl-Z and hanging up reach the child in it as signals.
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "guest.h"

static int terminal;

// A child in the terminal that sleeps and says when it is ready.
static pid_t StartChild(void) {
  const pid_t child = forkpty(&terminal, NULL, NULL, NULL);
  if (child < 0) Skip("no pseudo-terminal");
  if (child == 0) {
    NoCore();
    // Whoever runs us may have them ignored.
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    if (write(1, "ready", 5) != 5) _exit(1);
    for (;;) pause();
  }
  char text[16];
  size_t got = 0;
  while (got < 5) {
    const ssize_t part = read(terminal, text + got, sizeof(text) - got);
    if (part <= 0) break;
    got += (size_t)part;
  }
  Fact(got == 5 && memcmp(text, "ready", 5) == 0, "a child in a terminal");
  return child;
}

int main(void) {
  pid_t child = StartChild();
  if (write(terminal, "\x03", 1) != 1) return 1;
  Fact(WTERMSIG(Reap(child)) == SIGINT, "Ctrl-C: SIGINT");
  close(terminal);
  child = StartChild();
  if (write(terminal, "\x1c", 1) != 1) return 1;
  Fact(WTERMSIG(Reap(child)) == SIGQUIT, "Ctrl-\\: SIGQUIT");
  close(terminal);
  child = StartChild();
  struct winsize size = {.ws_row = 10, .ws_col = 20};
  Fact(ioctl(terminal, TIOCSWINSZ, &size) == 0, "window resized");
  close(terminal);
  Fact(WTERMSIG(Reap(child)) == SIGHUP, "hung up: SIGHUP");
  return Done();
}
