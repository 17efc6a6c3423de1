#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "guest.h"

static int counter_fd;

static void* Post(void* argument) {
  for (uint64_t i = 1; i <= 100; ++i) {
    if (write(counter_fd, &i, sizeof(i)) != sizeof(i)) Fact(false, "posted");
  }
  return argument;
}

int main(void) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  counter_fd = eventfd(0, EFD_CLOEXEC);
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data = {.u64 = 1}};
  Fact(epoll_ctl(epoll, EPOLL_CTL_ADD, counter_fd, &event) == 0, "eventfd added");
  event.data.u64 = 2;
  Fact(epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event) == 0, "timerfd added");
  Fact(epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event) == -1 && errno == EEXIST, "twice: EEXIST");
  Fact(epoll_wait(epoll, &event, 1, 0) == 0, "nothing yet");
  const struct itimerspec every = {{0, 2000000}, {0, 2000000}};
  timerfd_settime(timer, 0, &every, NULL);
  pthread_t thread = Start(Post, NULL);
  uint64_t sum = 0;
  uint64_t ticks = 0;
  while (sum < 5050 || ticks < 5) {
    struct epoll_event events[4];
    const int count = epoll_wait(epoll, events, 4, 5000);
    if (count <= 0) break;
    for (int i = 0; i < count; ++i) {
      uint64_t value = 0;
      if (read(events[i].data.u64 == 1 ? counter_fd : timer, &value, sizeof(value)) !=
          sizeof(value))
        break;
      *(events[i].data.u64 == 1 ? &sum : &ticks) += value;
    }
  }
  pthread_join(thread, NULL);
  Fact(sum == 5050, "all posts counted");
  Fact(ticks >= 5, "the timer ticked");
  return Done();
}
