// CRC-32C (Castagnoli; RFC 3720 appendix B.4), the checksum of the trap log. A CRC, not a hash,
// because it is certain to notice any change confined to 32 neighbouring bits, thus any single
// damaged byte.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trapline {

// Checksum of [data, data+size). `seed` is the checksum of what came before, 0 at the beginning:
// Crc32c(ab) == Crc32c(b, Crc32c(a)). Thread-safe. Uses the SSE4.2 instruction where there is one.
std::uint32_t Crc32c(const void* data, std::size_t size, std::uint32_t seed = 0);

// The same, bit by bit and slow: what the fast one is tested against, and what processors without
// SSE4.2 use.
std::uint32_t Crc32cPlain(const void* data, std::size_t size, std::uint32_t seed = 0);

}  // namespace trapline
