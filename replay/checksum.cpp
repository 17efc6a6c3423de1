#include "replay/checksum.h"

#include <nmmintrin.h>

#include <cstring>

namespace trapline {
namespace {

__attribute__((target("sse4.2"))) std::uint32_t Crc32cHardware(const unsigned char* data,
                                                               std::size_t size,
                                                               std::uint32_t seed) {
  std::uint64_t crc = ~seed;
  for (; size >= 8; size -= 8, data += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto crc32 = static_cast<std::uint32_t>(crc);
  for (; size > 0; --size, ++data) crc32 = _mm_crc32_u8(crc32, *data);
  return ~crc32;
}

}  // namespace

std::uint32_t Crc32cPlain(const void* data, std::size_t size, std::uint32_t seed) {
  constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint32_t crc = ~seed;
  for (std::size_t i = 0; i < size; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
  }
  return ~crc;
}

std::uint32_t Crc32c(const void* data, std::size_t size, std::uint32_t seed) {
  static const bool kHasInstruction = __builtin_cpu_supports("sse4.2") != 0;
  if (!kHasInstruction) return Crc32cPlain(data, size, seed);
  return Crc32cHardware(static_cast<const unsigned char*>(data), size, seed);
}

}  // namespace trapline
