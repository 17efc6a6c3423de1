// The limits of the program's memory.
#pragma once

#include <sys/resource.h>

namespace trapline {

// RLIMIT_AS and RLIMIT_DATA. On the host they would count the monitor's memory too: the program's
// values are kept and checked by AddressSpace, the host's are as high as they may be.
struct MemoryLimits {
  rlimit address_space{RLIM_INFINITY, RLIM_INFINITY};
  rlimit data{RLIM_INFINITY, RLIM_INFINITY};

  // Reads the process's limits and raises the host's; before anything large is mapped.
  static MemoryLimits TakeOver();
  // Sets the host's limits to these, for an execve that inherits them, or (`lifted`) as high as
  // they may be again.
  void Apply(bool lifted) const;
};

}  // namespace trapline
