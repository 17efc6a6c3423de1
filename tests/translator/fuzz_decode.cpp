// Any bytes as an instruction: Decode and Accesses must not crash, and what they say must make
// sense.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "translator/instruction.h"
#include "translator/memory_access.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  // An XSAVE area of any processor of today, every component in use.
  static unsigned char xsave[16384] = {};
  for (unsigned i = 0; i < 8; ++i) xsave[512 + i] = 0xff;
  trapline::RegisterFile registers;
  for (unsigned i = 0; i < 16; ++i) registers.gpr[i] = 0x0101010101010101ull * i;
  registers.xsave = xsave;
  // At every offset, as bytes that are misread as code.
  for (std::size_t start = 0; start < size; ++start) {
    const auto instruction = trapline::Decode(bytes.subspan(start), 0x400000 + start);
    if (!instruction) continue;
    if (instruction->length == 0 || instruction->length > trapline::kMaximumInstructionLength)
      std::abort();
    if (instruction->length > size - start) std::abort();
    // The same bytes without what follows them are the same instruction; one less is none.
    if (!trapline::Decode(bytes.subspan(start, instruction->length), 0x400000 + start))
      std::abort();
    if (trapline::Decode(bytes.subspan(start, instruction->length - 1u), 0x400000 + start))
      std::abort();
    const auto accesses = trapline::Accesses(*instruction, registers);
    for (const auto& access : accesses) {
      if (access.size == 0 || (!access.read && !access.write)) std::abort();
    }
  }
  return 0;
}
