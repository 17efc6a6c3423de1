// Signals that the kernel sends, and one by a descriptor of the process, come after what made it do
// so: a message in a queue, data in a pipe, a child.
// CLEAN
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/wait.h>

#include "race.h"

enum { kSendSignalByDescriptor = 424, kDescriptorOfProcess = 434 };  // Linux 5.1, 5.3

int by_queue, by_pipe, by_child, by_descriptor;
static mqd_t queue;
static int ends[2];

static void Await(int signal) {
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, signal);
  int number = 0;
  Check(sigwait(&awaited, &number) == 0 && number == signal);
}

static void* Waits(void* argument) {
  Await(SIGUSR1);
  by_queue++;
  Await(SIGIO);
  by_pipe++;
  Await(SIGCHLD);
  by_child++;
  Await(SIGUSR2);
  by_descriptor++;
  return argument;
}

static void* Causes(void* argument) {
  by_queue = 1;
  Check(mq_send(queue, "x", 1, 0) == 0);
  by_pipe = 1;
  Check(write(ends[1], "x", 1) == 1);
  by_child = 1;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  by_descriptor = 1;
  const int process = (int)syscall(kDescriptorOfProcess, getpid(), 0);
  Check(syscall(kSendSignalByDescriptor, process, SIGUSR2, NULL, 0) == 0);
  return argument;
}

int main(void) {
  sigset_t blocked;
  sigemptyset(&blocked);
  const int signals[] = {SIGUSR1, SIGIO, SIGCHLD, SIGUSR2};
  for (int i = 0; i < 4; i++) sigaddset(&blocked, signals[i]);
  pthread_sigmask(SIG_BLOCK, &blocked, NULL);
  struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = 8};
  char name[32];
  snprintf(name, sizeof name, "/trapline-%d", (int)getpid());
  queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
  Check(queue != (mqd_t)-1);
  mq_unlink(name);
  const struct sigevent notice = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  Check(mq_notify(queue, &notice) == 0 && pipe(ends) == 0);
  Check(fcntl(ends[0], F_SETOWN, getpid()) == 0 && fcntl(ends[0], F_SETFL, O_ASYNC) == 0);
  RunTwo(Causes, Waits);
  return Done();
}
