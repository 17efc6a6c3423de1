// Copies between the monitor and the program's memory that fail instead of faulting. The kernel
// does the access (process_vm_readv/writev on the monitor itself), so the program's own protections
// decide. Thread-safe. An address is the same on both sides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace trapline {

bool ReadGuest(std::uint64_t address, void* to, std::size_t size);
bool WriteGuest(std::uint64_t address, const void* from, std::size_t size);

template <typename T>
bool ReadGuest(std::uint64_t address, T& to) {
  return ReadGuest(address, &to, sizeof(T));
}
template <typename T>
bool WriteGuest(std::uint64_t address, const T& from) {
  return WriteGuest(address, &from, sizeof(T));
}

// A NUL-terminated string of at most `limit` bytes; nothing when unreadable or longer.
std::optional<std::string> ReadGuestString(std::uint64_t address, std::size_t limit = 4096);

}  // namespace trapline
