#include "hypervisor/host_mappings.h"

#include <algorithm>
#include <array>

namespace trapline {

std::uint64_t PagesInMemoryBefore(std::uint64_t end, std::uint64_t count,
                                  std::uint64_t region_start) {
  std::array<unsigned char, 64> in_memory{};
  const std::uint64_t size = count * kPageSize;
  if (end - region_start < size || mincore(Pointer(end - size), size, in_memory.data()) != 0)
    return 0;
  return static_cast<std::uint64_t>(
      std::count_if(in_memory.begin(), in_memory.begin() + static_cast<std::ptrdiff_t>(count),
                    [](unsigned char page) { return (page & 1) != 0; }));
}

}  // namespace trapline
