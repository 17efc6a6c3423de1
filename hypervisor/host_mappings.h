// The host's mappings under the program's memory.
#pragma once

#include <sys/mman.h>

#include <cstdint>

#include "shadow-pages/address.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace trapline {

// Of the program's memory, as the host has it: at the same address.
inline void* Pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

// KVM reads what it maps, so a page that may only be executed or only be written must be readable
// on the host; on x86-64 the program can read it natively too.
inline int HostProtection(int protection) {
  return (protection & (PROT_WRITE | PROT_EXEC)) != 0 ? protection | PROT_READ : protection;
}

// How many of the `count` pages, at most 64, before `end` are in memory. 0 if they begin before
// `region_start`.
std::uint64_t PagesInMemoryBefore(std::uint64_t end, std::uint64_t count,
                                  std::uint64_t region_start);
// Whether all of [address, address + size), at most 63 pages, is.
inline bool IsInMemory(std::uint64_t address, std::uint64_t size = 1) {
  const std::uint64_t start = AlignDown(address, kPageSize);
  const std::uint64_t end = AlignDown(address + size - 1, kPageSize) + kPageSize;
  const std::uint64_t count = (end - start) / kPageSize;
  return PagesInMemoryBefore(end, count, start) == count;
}

}  // namespace trapline
