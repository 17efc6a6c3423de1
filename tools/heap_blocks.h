// The program's heap blocks, live and lately freed: what reports say of where a race is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "detector/event.h"
#include "tools/intern_table.h"

namespace trapline {

struct HeapBlock {
  std::uint64_t start = 0, size = 0;  // bytes
  std::uint64_t ip = 0;               // return address of who allocated it; 0: not known
  ThreadId thread = 0;
  bool freed = false;
  std::uint64_t free_ip = 0;
  ThreadId freed_by = 0;
};

// Programs have hundreds of thousands of blocks: one takes 8 bytes. Who allocates and frees them is
// remembered of so many instructions of threads as there are numbers for (2^20, 2^19); of others
// nothing. Not thread-safe.
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

  // An instruction of a thread. The first one in a table stands for one that is not known.
  struct Who {
    std::uint64_t ip = 0;
    ThreadId thread = 0;
    bool operator==(const Who&) const = default;
  };
  struct HashOfWho {
    std::size_t operator()(const Who& who) const {
      const std::uint64_t product =
          (who.ip ^ std::uint64_t{who.thread} << 40) * 0x9e3779b97f4a7c15u;
      return product ^ product >> 32;
    }
  };
  using Whos = InternTable<Who, HashOfWho>;

  // Of at most a page.
  struct Small {
    std::uint64_t offset : 12;
    std::uint64_t size : 13;
    std::uint64_t allocated : 20;  // number in allocators_
    std::uint64_t freed : 19;      // 0: it is not; else 1 + number in freers_
  };
  static_assert(sizeof(Small) == 8);
  using Page = std::vector<Small>;  // ascending

  static Page::const_iterator After(const Page& page, std::uint64_t offset);
  HeapBlock Unpack(std::uint64_t page, const Small& block) const;
  Small* FindSmall(std::uint64_t start);
  std::optional<HeapBlock> LastSmall(std::uint64_t address) const;
  void ForgetThose(std::uint64_t start, std::uint64_t end);

  Whos allocators_, freers_;
  std::unordered_map<std::uint64_t, Page> small_;  // by number of the page where they start
  std::map<std::uint64_t, HeapBlock> large_;       // by start
};

}  // namespace trapline
