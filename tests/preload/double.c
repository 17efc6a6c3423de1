/* Preloaded beside the preload library: an agent that takes every report, while accesses count, and
 * checks what can be checked without knowing the program: that kinds exist, and that what is said
 * to be accessed is there. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "guest-agent/events.h"

void trapline_preload_set_interface(const struct trapline_agent_interface* agent)
    __attribute__((weak));

static uint64_t threads;
static __thread uint64_t number_plus_1;

static void Refuse(const char* what, size_t length) {
  if (write(STDERR_FILENO, what, length) >= 0) _exit(99);
  _exit(99);
}

static void OnEvent(uint64_t kind, uint64_t address, uint64_t size, uint64_t ip) {
  static const char kWrong[] = "double: wrong event\n";
  (void)address;
  (void)size;
  const int access = kind >= TRAPLINE_READ && kind <= TRAPLINE_ATOMIC_UPDATE;
  /* Nobody is to blame for these. */
  if (kind == TRAPLINE_TASK_SWITCH || kind == TRAPLINE_CLEAR_HISTORY) return;
  if (kind == TRAPLINE_TASK_OF_THREAD) kind = TRAPLINE_SYNC_USED;
  if (kind == 0 || access || kind >= TRAPLINE_EVENT_KINDS || ip == 0)
    Refuse(kWrong, sizeof(kWrong) - 1);
}

static void OnAccess(uint64_t kind, uint64_t address, uint64_t size, uint64_t ip,
                     uint64_t stack_pointer) {
  static const char kWrong[] = "double: wrong access\n";
  uint64_t here = (uint64_t)__builtin_frame_address(0);
  if (kind < TRAPLINE_READ || kind > TRAPLINE_ATOMIC_UPDATE || ip == 0 || size == 0 ||
      stack_pointer <= here || stack_pointer - here > 4096)
    Refuse(kWrong, sizeof(kWrong) - 1);
  (void)*(const volatile char*)address;
  (void)*(const volatile char*)(address + size - 1);
}

static uint64_t Thread(void) {
  if (number_plus_1 == 0) number_plus_1 = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
  return number_plus_1 - 1;
}

static uint64_t Tracking(void) { return 1; }

static const struct trapline_agent_interface kDouble = {
    TRAPLINE_AGENT_INTERFACE_VERSION, sizeof(kDouble), OnEvent, OnAccess, Thread, Tracking};

__attribute__((constructor)) static void Install(void) {
  static const char kAlone[] = "double: libtrapline-preload.so is not there\n";
  if (!trapline_preload_set_interface) Refuse(kAlone, sizeof(kAlone) - 1);
  trapline_preload_set_interface(&kDouble);
}
