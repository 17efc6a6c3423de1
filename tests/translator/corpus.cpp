#include "tests/translator/corpus.h"

#include <initializer_list>
#include <vector>

namespace trapline {
namespace {

// Displacements and immediates: all bytes differ, the first is a negative 8-bit displacement.
constexpr std::uint8_t kFiller[] = {0xf1, 0x22, 0x33, 0x14, 0x55, 0x66, 0x77, 0x18,
                                    0x29, 0x3a, 0x4b, 0x5c, 0x6d, 0x7e, 0x0f, 0x10};

// All forms of ModRM and SIB that are told apart, with every value of ModRM.reg.
std::vector<std::vector<std::uint8_t>> ModrmForms() {
  std::vector<std::vector<std::uint8_t>> forms;
  for (unsigned mod = 0; mod < 4; ++mod) {
    for (unsigned reg = 0; reg < 8; ++reg) {
      for (unsigned rm = 0; rm < 8; ++rm) {
        const auto modrm = static_cast<std::uint8_t>(mod << 6 | reg << 3 | rm);
        if (mod == 3 || rm != 4) {
          if (mod == 1 && rm != 0 && rm != 5) continue;
          if (mod == 2 && rm != 3) continue;
          forms.push_back({modrm});
          continue;
        }
        // Base rsp without index, base rbp (or none) with index, scale 8 with base rcx.
        for (const int sib : {0x24, 0x75, 0xe1})
          forms.push_back({modrm, static_cast<std::uint8_t>(sib)});
      }
    }
  }
  return forms;
}

void Emit(const EncodingVisitor& visit,
          std::initializer_list<std::span<const std::uint8_t>> parts) {
  EncodedBytes bytes{};
  std::size_t used = 0;
  for (const auto part : parts) {
    for (const std::uint8_t byte : part) bytes[used++] = byte;
  }
  for (std::size_t i = 0; used < bytes.size(); ++i) bytes[used++] = kFiller[i % sizeof kFiller];
  visit(bytes);
}

using Bytes = std::vector<std::uint8_t>;

}  // namespace

void ForEachLegacyEncoding(const EncodingVisitor& visit) {
  const std::vector<Bytes> prefixes = {
      {},           {0x66}, {0xf3}, {0xf2}, {0x66, 0xf2}, {0x48}, {0x66, 0x48},      {0xf3, 0x48},
      {0xf2, 0x48}, {0x67}, {0x64}, {0x65}, {0xf0},       {0x47}, {0xf3, 0x67, 0x43}};
  const std::vector<Bytes> escapes = {{}, {0x0f}, {0x0f, 0x38}, {0x0f, 0x3a}};
  const auto forms = ModrmForms();
  for (const Bytes& prefix : prefixes) {
    for (const Bytes& escape : escapes) {
      for (unsigned opcode = 0; opcode < 256; ++opcode) {
        const auto byte = static_cast<std::uint8_t>(opcode);
        for (const Bytes& form : forms) Emit(visit, {prefix, escape, {&byte, 1}, form});
      }
    }
  }
}

void ForEachVexEncoding(const EncodingVisitor& visit) {
  const auto forms = ModrmForms();
  for (std::uint8_t map = 1; map <= 3; ++map) {
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
      for (unsigned tail = 0; tail < 8; ++tail) {  // L and pp
        for (const unsigned w : {0u, 1u}) {
          for (const unsigned vvvv : {0xfu, 0xau}) {
            const std::uint8_t vex[] = {
                0xc4, static_cast<std::uint8_t>((vvvv == 0xa ? 0x00 : 0xe0) | map),
                static_cast<std::uint8_t>(w << 7 | vvvv << 3 | tail),
                static_cast<std::uint8_t>(opcode)};
            for (const Bytes& form : forms) Emit(visit, {vex, form});
            if (map != 1 || w != 0 || vvvv != 0xf) continue;
            const std::uint8_t vex2[] = {0xc5, static_cast<std::uint8_t>(0x80 | vvvv << 3 | tail),
                                         static_cast<std::uint8_t>(opcode)};
            for (const Bytes& form : forms) Emit(visit, {vex2, form});
          }
        }
      }
    }
  }
}

void ForEachEvexEncoding(const EncodingVisitor& visit) {
  // Memory with 8-bit displacement, without, by SIB with index; and one register form.
  std::vector<Bytes> forms;
  for (unsigned reg = 0; reg < 8; ++reg) {
    forms.push_back({static_cast<std::uint8_t>(0x40 | reg << 3 | 1)});
    forms.push_back({static_cast<std::uint8_t>(0x44 | reg << 3), 0xb1});
    forms.push_back({static_cast<std::uint8_t>(0x05 | reg << 3)});
    forms.push_back({static_cast<std::uint8_t>(0xc0 | reg << 3 | 2)});
  }
  for (const unsigned map : {1u, 2u, 3u, 5u, 6u}) {
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
      for (unsigned pp = 0; pp < 4; ++pp) {
        for (const unsigned w : {0u, 1u}) {
          for (unsigned length_and_b = 0; length_and_b < 6; ++length_and_b) {
            for (const unsigned opmask : {0u, 3u}) {
              for (const unsigned vvvv : {0xfu, 0x6u}) {
                const unsigned rxb = vvvv == 0xf ? 0xf0 : 0x10;  // inverted R X B R'
                const unsigned high = vvvv == 0xf ? 8 : 0;       // inverted V'
                const std::uint8_t evex[] = {
                    0x62, static_cast<std::uint8_t>(rxb | map),
                    static_cast<std::uint8_t>(w << 7 | vvvv << 3 | 4 | pp),
                    static_cast<std::uint8_t>((length_and_b >> 1) << 5 | (length_and_b & 1) << 4 |
                                              high | opmask),
                    static_cast<std::uint8_t>(opcode)};
                for (const Bytes& form : forms) Emit(visit, {evex, form});
              }
            }
          }
        }
      }
    }
  }
}

void ForEachXopEncoding(const EncodingVisitor& visit) {
  const auto forms = ModrmForms();
  for (const unsigned map : {8u, 9u, 10u}) {
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
      for (unsigned tail = 0; tail < 8; ++tail) {
        for (const unsigned w : {0u, 1u}) {
          for (const unsigned vvvv : {0xfu, 0xau}) {
            const std::uint8_t xop[] = {0x8f, static_cast<std::uint8_t>(0xe0 | map),
                                        static_cast<std::uint8_t>(w << 7 | vvvv << 3 | tail),
                                        static_cast<std::uint8_t>(opcode)};
            for (const Bytes& form : forms) Emit(visit, {xop, form});
          }
        }
      }
    }
  }
}

void ForEach3dNowEncoding(const EncodingVisitor& visit) {
  for (unsigned suffix = 0; suffix < 256; ++suffix) {
    const auto byte = static_cast<std::uint8_t>(suffix);
    const std::uint8_t direct[] = {0x0f, 0x0f, 0x03, byte};
    const std::uint8_t displaced[] = {0x64, 0x0f, 0x0f, 0x44, 0xc8, 0x7f, byte};
    const std::uint8_t registers[] = {0x0f, 0x0f, 0xc1, byte};
    Emit(visit, {direct});
    Emit(visit, {displaced});
    Emit(visit, {registers});
  }
}

}  // namespace trapline
