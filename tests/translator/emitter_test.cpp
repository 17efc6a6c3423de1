// What is emitted for a memory operand, decoded again.
#include "translator/emitter.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "translator/instruction.h"

namespace trapline {
namespace {

constexpr std::uint8_t kLoad = 0x8b;

void ExpectEncodes(const MemoryOperand& operand, bool gs) {
  for (const std::uint8_t reg : {kRax, kRsp, std::uint8_t{8}, std::uint8_t{15}}) {
    Emitter out(0x10000);
    out.WithOperand(kLoad, reg, operand, gs);
    const auto in = Decode(out.bytes(), out.here());
    ASSERT_TRUE(in);
    EXPECT_EQ(in->length, out.bytes().size());
    EXPECT_EQ(in->reg(), reg);
    ASSERT_EQ(in->memory().size(), 1u);
    const MemoryOperand& decoded = in->memory()[0];
    EXPECT_EQ(decoded.base, operand.base);
    EXPECT_EQ(decoded.index, operand.index);
    EXPECT_TRUE(operand.index == kNoRegister || decoded.scale == operand.scale);
    EXPECT_EQ(decoded.displacement, operand.displacement);
    EXPECT_EQ(decoded.address_is_32_bits, operand.address_is_32_bits);
    EXPECT_EQ(decoded.segment == Segment::kGs, gs);
    EXPECT_EQ(decoded.size, 8u);
  }
}

TEST(Emitter, EveryOperand) {
  for (std::uint8_t base = 0; base <= 16; ++base) {
    for (std::uint8_t index = 0; index <= 16; ++index) {
      if (index == kRsp) continue;
      for (const std::int64_t displacement :
           {0, 1, -1, 127, 128, -128, -129, 0x7fffffff, -0x7fffffff - 1}) {
        for (unsigned log2 = 0; log2 <= 3; ++log2) {
          MemoryOperand operand;
          if (base < 16) operand.base = base;
          if (index < 16) operand.index = index;
          operand.scale = static_cast<std::uint8_t>(1 << log2);
          operand.displacement = displacement;
          operand.address_is_32_bits = log2 == 1;
          ExpectEncodes(operand, log2 == 2);
        }
      }
    }
  }
}

// One byte for the displacement where that is enough, none for none.
TEST(Emitter, ShortestEncoding) {
  const auto length = [](std::uint8_t base, std::int32_t displacement) {
    Emitter out(0x10000);
    out.Lea(kRax, base, displacement);
    return out.bytes().size();
  };
  EXPECT_EQ(length(kRdi, 0), 3u);
  EXPECT_EQ(length(kRdi, -128), 4u);
  EXPECT_EQ(length(kRdi, 128), 7u);
  EXPECT_EQ(length(kRbp, 0), 4u);
  EXPECT_EQ(length(13, 0), 4u);
  EXPECT_EQ(length(kRsp, 0), 4u);
  EXPECT_EQ(length(12, 127), 5u);
}

}  // namespace
}  // namespace trapline
