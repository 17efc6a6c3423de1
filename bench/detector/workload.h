// Executions in memory for the detectors' benchmarks.
#pragma once

#include <cstdint>
#include <vector>

#include "detector/event.h"

namespace trapline {

struct Workload {
  std::size_t events = 2'000'000;
  int threads = 8;
  std::uint64_t working_set = 8 << 20;  // bytes of private data, all threads together
  int burst = 200;                      // events of one thread before another one runs, on average
  std::uint64_t seed = 1;
};

// A parallel program by the frequencies of FastTrack's Figure 3: 82 % reads, 14.5 % writes, 3.3 %
// synchronisation. Threads sweep over and jump within their own data, read tables that all share,
// and update records under locks; accesses are of 8, 4 and 1 bytes. Without races but for a few.
std::vector<Event> MakeWorkload(const Workload& workload);

}  // namespace trapline
