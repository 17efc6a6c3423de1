// Memory that several processes of a run share: accesses of different processes are not compared
// with each other, and the user is told so, once for each piece of memory.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace trapline {

// Two processes have used memory that both have mapped, at least one of them so that it could
// write.
struct SharedMemoryUse {
  std::string memory;      // its name: a path, or what kind of memory it is
  std::uint64_t size = 0;  // bytes, as the second process had it mapped
  pid_t first = 0, second = 0;
};

// A table that all processes of a run have in common. Whether a process has used a mapping is asked
// when the mapping ends, by what the kernel has put into its page table: that a forked child has
// inherited it is no use. Not thread-safe; processes do not disturb each other.
class SharedMemoryTable {
 public:
  SharedMemoryTable() = default;
  SharedMemoryTable(const SharedMemoryTable&) = delete;
  SharedMemoryTable& operator=(const SharedMemoryTable&) = delete;
  ~SharedMemoryTable();

  // `inherited`: what descriptor() was before execve, of which it takes ownership; -1: a new table.
  // Where there is no memory for it, nothing will be found.
  void Open(int inherited);
  // -1: none.
  int descriptor() const { return descriptor_; }

  // The shared mapping at [start, end) of `process`, this one, ends. Nothing, unless this tells
  // that its memory was used by another process too, and nobody has been told so before.
  std::optional<SharedMemoryUse> Note(std::uint64_t start, std::uint64_t end, pid_t process);

 private:
  struct Entry;
  struct Table;

  int descriptor_ = -1;
  Table* table_ = nullptr;
};

}  // namespace trapline
