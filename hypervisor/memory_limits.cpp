#include "hypervisor/memory_limits.h"

namespace trapline {
namespace {

void SetHostLimit(int resource, rlimit limit, bool lifted) {
  const auto which = static_cast<__rlimit_resource>(resource);
  if (lifted) {
    const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(which, &unlimited) == 0) return;
    limit.rlim_cur = limit.rlim_max;
  }
  setrlimit(which, &limit);
}

}  // namespace

MemoryLimits MemoryLimits::TakeOver() {
  MemoryLimits limits;
  getrlimit(RLIMIT_AS, &limits.address_space);
  getrlimit(RLIMIT_DATA, &limits.data);
  limits.Apply(true);
  return limits;
}

void MemoryLimits::Apply(bool lifted) const {
  SetHostLimit(RLIMIT_AS, address_space, lifted);
  SetHostLimit(RLIMIT_DATA, data, lifted);
}

}  // namespace trapline
