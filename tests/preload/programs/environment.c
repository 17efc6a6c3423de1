/* Is its own agent, and prints what the program sees of LD_PRELOAD. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "guest-agent/events.h"

static unsigned long reports;

static void OnEvent(uint64_t kind, uint64_t address, uint64_t size, uint64_t ip) {
  (void)kind;
  (void)address;
  (void)size;
  (void)ip;
  __atomic_add_fetch(&reports, 1, __ATOMIC_RELAXED);
}

static void OnAccess(uint64_t kind, uint64_t address, uint64_t size, uint64_t ip,
                     uint64_t stack_pointer) {
  (void)stack_pointer;
  OnEvent(kind, address, size, ip);
}

static uint64_t Thread(void) { return 0; }
static uint64_t Tracking(void) { return 1; }

static const struct trapline_agent_interface kAgent = {
    TRAPLINE_AGENT_INTERFACE_VERSION, sizeof(kAgent), OnEvent, OnAccess, Thread, Tracking};

/* The preload library asks here: the program's definition comes first. */
unsigned long getauxval(unsigned long type) {
  return type == TRAPLINE_AT_AGENT && getenv("WITH_AGENT") ? (unsigned long)&kAgent : 0;
}

int main(int count, char** arguments, char** environment) {
  (void)count;
  (void)arguments;
  const char* value = getenv("LD_PRELOAD");
  printf("LD_PRELOAD %s\n", value ? value : "is not set");
  int variables = 0;
  while (environment[variables]) ++variables;
  printf("%d variables, reports %s\n", variables, reports ? "came" : "did not come");
  return 0;
}
