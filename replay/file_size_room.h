// Room for files in memory.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace trapline {

// Lifts the process's own limit on the size of files (RLIMIT_FSIZE) up to the hard one while it
// lives, for it holds for shared memory, too. One at a time in a process.
class FileSizeRoom {
 public:
  FileSizeRoom() {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit lifted{before_.rlim_max, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &lifted);
  }
  FileSizeRoom(const FileSizeRoom&) = delete;
  FileSizeRoom& operator=(const FileSizeRoom&) = delete;
  ~FileSizeRoom() { setrlimit(RLIMIT_FSIZE, &before_); }

  // Whether a file may have as much: to make it larger would be a signal, and no error.
  bool Has(std::uint64_t bytes) const { return bytes <= before_.rlim_max; }

 private:
  rlimit before_{};
};

}  // namespace trapline
