// Encodings of x86-64 instructions, made systematically: every opcode of every map, with the
// prefixes, ModRM forms, vector lengths and masks that change what an instruction does to memory.
// Not all of them are instructions.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>

namespace trapline {

// 24 bytes: what follows the encoded bytes is filler for displacement and immediate.
using EncodedBytes = std::array<std::uint8_t, 24>;
using EncodingVisitor = std::function<void(const EncodedBytes&)>;

void ForEachLegacyEncoding(const EncodingVisitor& visit);
void ForEachVexEncoding(const EncodingVisitor& visit);
void ForEachEvexEncoding(const EncodingVisitor& visit);
void ForEachXopEncoding(const EncodingVisitor& visit);
void ForEach3dNowEncoding(const EncodingVisitor& visit);

}  // namespace trapline
