#include "hypervisor/guest_copy.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace trapline {
namespace {
constexpr std::size_t kLargestCopy = 0x7ffff000;  // what the kernel moves in one call
}

// By the thread, not by the process: once the initial thread has ended, as where main calls
// pthread_exit, the kernel finds no memory by the process's number, nor by /proc/self.

bool ReadGuest(std::uint64_t address, void* to, std::size_t size) {
  if (size > kLargestCopy) return false;
  const iovec local{to, size};
  const iovec remote{reinterpret_cast<void*>(address), size};
  return process_vm_readv(gettid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

bool WriteGuest(std::uint64_t address, const void* from, std::size_t size) {
  if (size > kLargestCopy) return false;
  const iovec local{const_cast<void*>(from), size};
  const iovec remote{reinterpret_cast<void*>(address), size};
  return process_vm_writev(gettid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

std::optional<std::string> ReadGuestString(std::uint64_t address, std::size_t limit) {
  std::string text;
  char buffer[256];
  while (text.size() < limit) {
    // Never across a page border in one go: the string may end just before an unmapped page.
    const std::size_t to_border = 4096 - address % 4096;
    const std::size_t chunk = std::min({sizeof buffer, to_border, limit - text.size()});
    if (!ReadGuest(address, buffer, chunk)) return std::nullopt;
    if (const void* end = std::memchr(buffer, 0, chunk)) {
      text.append(buffer, static_cast<std::size_t>(static_cast<const char*>(end) - buffer));
      return text;
    }
    text.append(buffer, chunk);
    address += chunk;
  }
  return std::nullopt;
}

}  // namespace trapline
