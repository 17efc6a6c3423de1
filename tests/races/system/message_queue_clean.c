// Message queues of both kinds, and System V semaphores, order what came before the send.
// CLEAN
#include <fcntl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

#include "race.h"

int values[3];
static mqd_t queue;
static int messages, semaphores;

static void* Receiver(void* argument) {
  char text[8];
  Check(mq_receive(queue, text, sizeof text, NULL) == 1);
  values[0]++;
  struct {
    long type;
    char text[8];
  } message;
  Check(msgrcv(messages, &message, sizeof message.text, 0, 0) == 1);
  values[1]++;
  struct sembuf take = {0, -1, 0};
  Check(semop(semaphores, &take, 1) == 0);
  values[2]++;
  return argument;
}

int main(void) {
  struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = 8};
  char name[32];
  snprintf(name, sizeof name, "/trapline-%d", (int)getpid());
  queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
  messages = msgget(IPC_PRIVATE, 0600);
  semaphores = semget(IPC_PRIVATE, 1, 0600);
  Check(queue != (mqd_t)-1 && messages >= 0 && semaphores >= 0);
  mq_unlink(name);
  const pthread_t receiver = Start(Receiver, NULL);
  values[0] = 1;
  Check(mq_send(queue, "x", 1, 0) == 0);
  struct {
    long type;
    char text[8];
  } message = {1, "x"};
  values[1] = 1;
  Check(msgsnd(messages, &message, 1, 0) == 0);
  struct sembuf give = {0, 1, 0};
  values[2] = 1;
  Check(semop(semaphores, &give, 1) == 0);
  Join(receiver);
  msgctl(messages, IPC_RMID, NULL);
  semctl(semaphores, 0, IPC_RMID);
  return values[0] + values[1] + values[2] == 6 ? Done() : 1;
}
