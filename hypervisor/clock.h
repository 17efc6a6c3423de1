// Clocks as one number.
#pragma once

#include <cstdint>
#include <ctime>

namespace trapline {

// What `clock` (clock_gettime(2)) shows, in nanoseconds.
inline std::uint64_t Nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Of the calling thread, in nanoseconds.
inline std::uint64_t ProcessorTime() { return Nanoseconds(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace trapline
