// The program's heap blocks, live and lately freed: what reports say of where a race is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "detector/event.h"

namespace trapline {

struct HeapBlock {
  std::uint64_t start = 0, size = 0;  // bytes
  std::uint64_t ip = 0;               // return address of who allocated it; 0: not known
  ThreadId thread = 0;
  bool freed = false;
  std::uint64_t free_ip = 0;
  ThreadId freed_by = 0;
};

// Programs have hundreds of thousands of blocks: one takes 24 bytes. Not thread-safe.
class HeapBlocks {
 public:
  // Blocks that lie in the way are history from now on.
  void Allocate(std::uint64_t start, std::uint64_t size, std::uint64_t ip, ThreadId thread);
  // Of the block that starts here: its size. Nothing: none is known.
  std::optional<std::uint64_t> Free(std::uint64_t start, std::uint64_t ip, ThreadId thread);
  void Forget(std::uint64_t start);
  // The block that has a byte in [address, address + size).
  std::optional<HeapBlock> Find(std::uint64_t address, std::uint64_t size) const;

 private:
  static constexpr std::uint64_t kPage = 4096;

  // Of at most a page. What no address has, bits from 48 on, is cut off.
  struct Small {
    std::uint64_t ip : 48;
    std::uint64_t offset : 12;
    std::uint64_t freed : 1;
    std::uint64_t free_ip : 48;
    std::uint64_t size : 13;
    std::uint64_t thread : 24;
    std::uint64_t freed_by : 24;
  };
  static_assert(sizeof(Small) == 24 && kMaxThreads <= 1 << 24);
  using Page = std::vector<Small>;  // ascending

  static Page::const_iterator After(const Page& page, std::uint64_t offset);
  static HeapBlock Unpack(std::uint64_t page, const Small& block);
  Small* FindSmall(std::uint64_t start);
  std::optional<HeapBlock> LastSmall(std::uint64_t address) const;
  void ForgetThose(std::uint64_t start, std::uint64_t end);

  std::unordered_map<std::uint64_t, Page> small_;  // by number of the page where they start
  std::map<std::uint64_t, HeapBlock> large_;       // by start
};

}  // namespace trapline
