#include "guest.h"

int main(void) {
  cpu_set_t allowed;
  Fact(sched_getaffinity(0, sizeof(allowed), &allowed) == 0, "affinity read");
  bool all_match = true;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0) {
      all_match = false;
      continue;
    }
    unsigned seen = 9999;
    unsigned node = 9999;
    getcpu(&seen, &node);
    unsigned raw = 9999;
    syscall(SYS_getcpu, &raw, NULL, NULL);
    all_match =
        all_match && seen == (unsigned)cpu && raw == seen && sched_getcpu() == cpu && node < 9999;
  }
  Fact(all_match, "pinned to each processor in turn, getcpu and sched_getcpu agree");
  Fact(sched_setaffinity(0, sizeof(allowed), &allowed) == 0, "affinity restored");
  cpu_set_t none;
  CPU_ZERO(&none);
  Fact(sched_setaffinity(0, sizeof(none), &none) == -1 && errno == EINVAL,
       "no processor is EINVAL");
  return Done();
}
