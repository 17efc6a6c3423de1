// The program hands out pages itself, by userfaultfd, in a mapping whose other pages threads have
// used by turns.
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "guest.h"

enum { kPages = 8, kShared = 4, kRounds = 50, kFresh = 64 << 20 };

static char* memory;
static pthread_barrier_t barrier;

// Each page goes from thread to thread.
static void* UsePages(void* argument) {
  for (int round = 0; round < kRounds; ++round) {
    pthread_barrier_wait(&barrier);
    for (int page = 0; page < kShared; ++page)
      if ((page + round) % 2 == (argument != NULL)) memory[page * kPage] += 1;
  }
  return NULL;
}

static int descriptor;

// Fills each page that is missed with its number, and uses fresh memory before: it does not wait
// for who waits for it.
static void* HandOut(void* argument) {
  static char content[kPage] __attribute__((aligned(kPage)));
  for (int missed = 0; missed < kPages - kShared; ++missed) {
    struct uffd_msg message;
    if (read(descriptor, &message, sizeof(message)) != sizeof(message)) return NULL;
    char* fresh = mmap(NULL, kFresh, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return NULL;
    fresh[0] = fresh[kFresh - 1] = 1;
    const uint64_t page = message.arg.pagefault.address & ~(uint64_t)(kPage - 1);
    memset(content, (int)((page - (uint64_t)memory) / kPage) + 'A', kPage);
    struct uffdio_copy copy = {
        .dst = page, .src = (uint64_t)content, .len = kPage, .mode = 0, .copy = 0};
    if (message.event != UFFD_EVENT_PAGEFAULT || ioctl(descriptor, UFFDIO_COPY, &copy) != 0)
      return NULL;
  }
  return argument;
}

int main(void) {
  memory = mmap(NULL, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_t threads[2];
  pthread_barrier_init(&barrier, NULL, 2);
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, UsePages, i == 0 ? NULL : memory);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  bool all = true;
  for (int page = 0; page < kShared; ++page) all = all && memory[page * kPage] == kRounds;
  Fact(all, "both threads have used all pages");

  descriptor = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  if (descriptor < 0) Skip("userfaultfd is not allowed");
  struct uffdio_api api = {.api = UFFD_API};
  Fact(ioctl(descriptor, UFFDIO_API, &api) == 0, "userfaultfd answers");
  struct uffdio_register range = {.range = {(uint64_t)memory, kPages * kPage},
                                  .mode = UFFDIO_REGISTER_MODE_MISSING};
  Fact(ioctl(descriptor, UFFDIO_REGISTER, &range) == 0, "the mapping is the program's to watch");
  pthread_t handler;
  pthread_create(&handler, NULL, HandOut, memory);
  all = true;
  for (int page = kShared; page < kPages; ++page)
    all = all && memory[page * kPage + 5] == page + 'A';
  Fact(all, "missing pages hold what was handed out");
  void* result = NULL;
  pthread_join(handler, &result);
  Fact(result != NULL, "each was asked for once");

  // Once more for those that were given back.
  pthread_create(&handler, NULL, HandOut, memory);
  madvise(memory + kShared * kPage, (kPages - kShared) * kPage, MADV_DONTNEED);
  all = true;
  for (int page = kShared; page < kPages; ++page) {
    memory[page * kPage] += 1;
    all = all && memory[page * kPage] == page + 'A' + 1;
  }
  Fact(all, "pages that were given back are handed out anew");
  pthread_join(handler, &result);
  Fact(result != NULL, "each was asked for once more");
  return Done();
}
