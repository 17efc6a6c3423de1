// What interrupts threads while they hand turns on by futexes: handlers with SA_RESTART and
// without, timeouts, other processes that the program forks in between, and a word that both use.
#include <linux/futex.h>

#include "guest.h"

enum { kTurns = 500, kBusy = 200 };

static int turn;
static int handled;
static int done;

static long Futex(int* word, int operation, int value, const struct timespec* timeout) {
  return syscall(SYS_futex, word, operation, value, timeout, NULL, ~0);
}

static void Count(int signal) {
  (void)signal;
  Add(&handled, 1);
}

struct Side {
  int own;
  bool timeouts, forks, shared, disturbed;
  bool other_errors;
  int* word;
  int turns;
};

static void* Alternate(void* argument) {
  struct Side* const side = argument;
  const int flag = side->shared ? 0 : FUTEX_PRIVATE_FLAG;
  const struct timespec soon = {0, 50000};
  while (side->disturbed && Load(&handled) == 0) sched_yield();  // the disturber is there
  for (int i = 0; i < side->turns; ++i) {
    for (int now; (now = __atomic_load_n(side->word, __ATOMIC_ACQUIRE)) % 2 != side->own;) {
      if (Futex(side->word, FUTEX_WAIT | flag, now, side->timeouts ? &soon : NULL) != 0 &&
          errno != EAGAIN && errno != EINTR && !(side->timeouts && errno == ETIMEDOUT)) {
        side->other_errors = true;
      }
    }
    if (side->forks && i % 64 == 0) {
      const pid_t child = fork();
      if (child == 0) {
        // Nobody waits here, whoever did in the parent.
        int result = Futex(side->word, FUTEX_WAKE | flag, INT_MAX, NULL) != 0;
        _exit(result);
      }
      int status = 0;
      if (waitpid(child, &status, 0) != child || status != 0) side->other_errors = true;
    }
    __atomic_add_fetch(side->word, 1, __ATOMIC_RELEASE);
    Futex(side->word, FUTEX_WAKE | flag, INT_MAX, NULL);
  }
  return NULL;
}

static void* Disturb(void* argument) {
  const pthread_t* const threads = argument;
  for (int i = 0; Load(&done) == 0; ++i) {
    pthread_kill(threads[i % 2], i % 4 < 2 ? SIGUSR1 : SIGUSR2);
    for (volatile int j = 0; j < kBusy * (i % 7); ++j) {
    }
  }
  return NULL;
}

static void Run(const char* name, bool disturb, struct Side sides[2]) {
  turn = 0;
  done = handled = 0;
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    sides[i].own = i;
    sides[i].word = &turn;
    sides[i].turns = kTurns;
    sides[i].disturbed = disturb;
  }
  // The second one first, so that the other's end does not leave it without a thread to signal.
  threads[0] = Start(Alternate, &sides[0]);
  threads[1] = Start(Alternate, &sides[1]);
  pthread_t disturber;
  if (disturb) disturber = Start(Disturb, threads);
  WaitUntil(&turn, 2 * kTurns);
  Add(&done, 1);
  if (disturb) pthread_join(disturber, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  Fact(turn == 2 * kTurns && !sides[0].other_errors && !sides[1].other_errors, "%s", name);
  if (disturb) Fact(handled > 0, "%s: handlers ran", name);
}

int main(void) {
  struct sigaction action = {.sa_handler = Count, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  action.sa_flags = 0;
  sigaction(SIGUSR2, &action, NULL);
  Run("undisturbed", false, (struct Side[2]){{0}, {0}});
  Run("signals", true, (struct Side[2]){{0}, {0}});
  Run("timeouts", false, (struct Side[2]){{.timeouts = true}, {.timeouts = true}});
  Run("timeouts of one, signals", true, (struct Side[2]){{.timeouts = true}, {0}});
  Run("forks in between", false, (struct Side[2]){{.forks = true}, {0}});
  Run("not private", false, (struct Side[2]){{.shared = true}, {.shared = true}});

  // Two processes, in memory that they share.
  int* const shared = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  struct Side side = {.shared = true, .word = shared, .turns = kTurns};
  const pid_t child = fork();
  side.own = child == 0;
  Alternate(&side);
  if (child == 0) _exit(side.other_errors);
  int status = 0;
  waitpid(child, &status, 0);
  Fact(status == 0 && !side.other_errors && *shared == 2 * kTurns, "two processes");
  return Done();
}
