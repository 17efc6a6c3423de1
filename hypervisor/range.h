// Addresses of the program's.
#pragma once

#include <cstdint>

namespace trapline {

// [start, end), bytes.
struct Range {
  std::uint64_t start, end;
};

}  // namespace trapline
