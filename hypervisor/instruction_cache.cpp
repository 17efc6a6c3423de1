#include "hypervisor/instruction_cache.h"

#include <cstring>

#include "hypervisor/guest_copy.h"
#include "shadow-pages/address.h"

namespace trapline {

std::optional<Instruction> InstructionCache::DecodeAt(std::uint64_t rip) {
  std::array<unsigned char, kMaximumInstructionLength> bytes{};
  std::size_t length = bytes.size();
  // The instruction may end just before memory that is not there.
  if (!ReadGuest(rip, bytes.data(), length)) {
    length = kPageSize - rip % kPageSize;
    if (length >= bytes.size() || !ReadGuest(rip, bytes.data(), length)) return std::nullopt;
  }
  const std::lock_guard lock(mutex_);
  const auto found = instructions_.find(rip);
  // Code may have been rewritten since.
  if (found != instructions_.end() && std::memcmp(found->second.bytes.data(), bytes.data(),
                                                  found->second.instruction.length) == 0) {
    return found->second.instruction;
  }
  const auto decoded = Decode({bytes.data(), length}, rip);
  if (decoded) instructions_.insert_or_assign(rip, CachedInstruction{bytes, *decoded});
  return decoded;
}

}  // namespace trapline
