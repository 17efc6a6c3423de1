// Accesses with registers given by hand: the answers are worked out from the manuals.
#include "translator/memory_access.h"

#include <cpuid.h>
#include <gtest/gtest.h>

#include <vector>

#include "translator/locked_instructions.h"

namespace trapline {
namespace {

using Bytes = std::vector<std::uint8_t>;

RegisterFile SomeRegisters() {
  RegisterFile registers;
  for (unsigned i = 0; i < 16; ++i) registers.gpr[i] = 0x10000 * (i + 1);
  registers.rip = 0x400000;
  registers.fs_base = 0x7f0000000000;
  registers.gs_base = 0x600000000000;
  return registers;
}

std::vector<MemoryAccess> Of(const Bytes& bytes, const RegisterFile& registers) {
  const auto instruction = Decode(bytes, registers.rip);
  EXPECT_TRUE(instruction);
  if (!instruction) return {};
  EXPECT_EQ(instruction->length, bytes.size());
  const auto list = Accesses(*instruction, registers);
  EXPECT_TRUE(list.complete());
  return {list.begin(), list.end()};
}

using List = std::vector<MemoryAccess>;
constexpr std::uint64_t kR = 0x10000;  // register i holds kR * (i + 1)

MemoryAccess Read(std::uint64_t address, std::uint64_t size) {
  return {address, size, true, false, false};
}
MemoryAccess Write(std::uint64_t address, std::uint64_t size) {
  return {address, size, false, true, false};
}

TEST(Accesses, SegmentsAndRipRelative) {
  const RegisterFile registers = SomeRegisters();
  EXPECT_EQ(Of({0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0}, registers),
            List{Read(0x7f0000000028, 8)});
  EXPECT_EQ(Of({0x65, 0x89, 0x08}, registers), List{Write(0x600000000000 + kR, 4)});
  // A null segment prefix after fs does not undo it.
  EXPECT_EQ(Of({0x64, 0x3e, 0x89, 0x08}, registers), List{Write(0x7f0000000000 + kR, 4)});
  EXPECT_EQ(Of({0x8b, 0x05, 0x10, 0, 0, 0}, registers), List{Read(0x400016, 4)});
  EXPECT_EQ(Of({0xc7, 0x05, 0x10, 0, 0, 0, 1, 2, 3, 4}, registers), List{Write(0x40001a, 4)});
}

TEST(Accesses, Stack) {
  const RegisterFile registers = SomeRegisters();
  const std::uint64_t rsp = 5 * kR;
  EXPECT_EQ(Of({0x50}, registers), List{Write(rsp - 8, 8)});
  EXPECT_EQ(Of({0x66, 0x50}, registers), List{Write(rsp - 2, 2)});
  EXPECT_EQ(Of({0x58}, registers), List{Read(rsp, 8)});
  EXPECT_EQ(Of({0xff, 0x33}, registers), (List{Read(4 * kR, 8), Write(rsp - 8, 8)}));
  EXPECT_EQ(Of({0xff, 0x34, 0x24}, registers), (List{Read(rsp, 8), Write(rsp - 8, 8)}));
  EXPECT_EQ(Of({0x8f, 0x04, 0x24}, registers), (List{Read(rsp, 8), Write(rsp + 8, 8)}));
  EXPECT_EQ(Of({0xe8, 0, 0, 0, 0}, registers), List{Write(rsp - 8, 8)});
  EXPECT_EQ(Of({0xff, 0x10}, registers), (List{Read(kR, 8), Write(rsp - 8, 8)}));
  EXPECT_EQ(Of({0xff, 0x20}, registers), List{Read(kR, 8)});
  EXPECT_EQ(Of({0xc3}, registers), List{Read(rsp, 8)});
  EXPECT_EQ(Of({0xc9}, registers), List{Read(6 * kR, 8)});
  EXPECT_EQ(Of({0xc8, 0x10, 0, 0}, registers), List{Write(rsp - 8, 8)});
  EXPECT_EQ(Of({0xc8, 0x10, 0, 3}, registers), (List{Read(6 * kR - 16, 16), Write(rsp - 32, 32)}));
}

TEST(Accesses, Strings) {
  RegisterFile registers = SomeRegisters();
  registers.gpr[kRcx] = 10;
  const std::uint64_t rsi = 7 * kR;
  const std::uint64_t rdi = 8 * kR;
  EXPECT_EQ(Of({0xf3, 0xa4}, registers), (List{Read(rsi, 10), Write(rdi, 10)}));
  EXPECT_EQ(Of({0xf3, 0x48, 0xa5}, registers), (List{Read(rsi, 80), Write(rdi, 80)}));
  EXPECT_EQ(Of({0xa5}, registers), (List{Read(rsi, 4), Write(rdi, 4)}));
  EXPECT_EQ(Of({0xf3, 0x66, 0xab}, registers), List{Write(rdi, 20)});
  EXPECT_EQ(Of({0x64, 0xac}, registers), List{Read(0x7f0000000000 + rsi, 1)});
  EXPECT_EQ(Of({0xf3, 0xa6}, registers), (List{Read(rsi, 1), Read(rdi, 1)}));
  EXPECT_EQ(Of({0xf2, 0x48, 0xaf}, registers), List{Read(rdi, 8)});
  registers.rflags = 1u << 10;
  EXPECT_EQ(Of({0xf3, 0x48, 0xa5}, registers), (List{Read(rsi - 72, 80), Write(rdi - 72, 80)}));
  EXPECT_EQ(Of({0xf3, 0xaa}, registers), List{Write(rdi - 9, 10)});
  registers.gpr[kRcx] = 0x100000000;
  EXPECT_EQ(Of({0xf3, 0x67, 0xaa}, registers), List{});
  registers.gpr[kRcx] = 0;
  EXPECT_EQ(Of({0xf3, 0xa4}, registers), List{});
  EXPECT_EQ(Of({0xf3, 0xa6}, registers), List{});
}

TEST(Accesses, BitStringsAndAtomics) {
  RegisterFile registers = SomeRegisters();
  registers.gpr[kRcx] = static_cast<std::uint64_t>(-1);
  EXPECT_EQ(Of({0x48, 0x0f, 0xa3, 0x08}, registers), List{Read(kR - 8, 8)});
  EXPECT_EQ(Of({0x66, 0x0f, 0xa3, 0x08}, registers), List{Read(kR - 2, 2)});
  registers.gpr[kRcx] = 0x100000045;  // 32 bits of it count
  const MemoryAccess update{kR + 8, 4, true, true, true};
  EXPECT_EQ(Of({0xf0, 0x0f, 0xab, 0x08}, registers), List{update});
  const MemoryAccess exchange{kR, 8, true, true, true};
  EXPECT_EQ(Of({0x48, 0x87, 0x08}, registers), List{exchange});
  EXPECT_EQ(Of({0xf0, 0x48, 0x0f, 0xb1, 0x08}, registers), List{exchange});
  const MemoryAccess plain{kR, 8, true, true, false};
  EXPECT_EQ(Of({0x48, 0x0f, 0xb1, 0x08}, registers), List{plain});
}

// Whether the processor takes the condition for one that holds.
template <int kCondition>
bool HoldsNatively(std::uint64_t flags) {
  std::uint8_t holds = 0;
  asm volatile(
      "lea -128(%%rsp), %%rsp\n"
      "push %1\n"
      "popf\n"
      "lea 128(%%rsp), %%rsp\n"
      ".byte 0x0f, 0x90 + %c2, 0xc0"
      : "=a"(holds)
      : "r"(flags), "i"(kCondition)
      : "cc");
  return holds != 0;
}

template <int kCondition>
void ExpectConditionAsOnProcessor() {
  for (unsigned set = 0; set < 32; ++set) {
    constexpr unsigned kFlags[] = {0, 2, 6, 7, 11};  // CF, PF, ZF, SF, OF
    std::uint64_t flags = 0x202;
    for (unsigned i = 0; i < 5; ++i) flags |= std::uint64_t{set >> i & 1} << kFlags[i];
    EXPECT_EQ(ConditionHolds(0x40 + kCondition, flags), HoldsNatively<kCondition>(flags))
        << kCondition << " of " << flags;
  }
  if constexpr (kCondition < 15) ExpectConditionAsOnProcessor<kCondition + 1>();
}

TEST(Instructions, ConditionsHoldAsOnTheProcessor) { ExpectConditionAsOnProcessor<0>(); }

TEST(Instructions, ThatCanOnlyStoreWhatIsThere) {
  const auto only_reads = [](const Bytes& bytes) {
    const auto instruction = Decode(bytes, 0x400000);
    EXPECT_TRUE(instruction);
    return instruction && OnlyReadsMemory(*instruction) && !IsExchange(*instruction);
  };
  EXPECT_TRUE(only_reads({0xf0, 0x48, 0x0f, 0xb1, 0x07}));   // lock cmpxchg %rax, (%rdi)
  EXPECT_TRUE(only_reads({0xf0, 0x66, 0x0f, 0xb1, 0x07}));   // %ax
  EXPECT_TRUE(only_reads({0xf0, 0x0f, 0xb0, 0x07}));         // %al
  EXPECT_FALSE(only_reads({0xf0, 0x0f, 0xb0, 0x27}));        // %ah
  EXPECT_FALSE(only_reads({0xf0, 0x48, 0x0f, 0xb1, 0x0f}));  // %rcx
  EXPECT_FALSE(only_reads({0xf0, 0x4c, 0x0f, 0xb1, 0x07}));  // %r8
  EXPECT_FALSE(only_reads({0x48, 0x0f, 0xb1, 0x07}));        // not locked
  EXPECT_FALSE(only_reads({0xf0, 0x48, 0x0f, 0xc1, 0x07}));  // lock xadd %rax, (%rdi)
  EXPECT_FALSE(only_reads({0x48, 0x87, 0x07}));              // xchg %rax, (%rdi)
}

TEST(Accesses, NeedsVectorRegistersForGathers) {
  const Bytes gather = {0xc4, 0xe2, 0x69,
                        0x90, 0x04, 0x08};  // vpgatherdd %xmm2, (%rax,%xmm1), %xmm0
  const auto instruction = Decode(gather, 0);
  ASSERT_TRUE(instruction);
  EXPECT_FALSE(Accesses(*instruction, SomeRegisters()).complete());
}

TEST(Accesses, UnknownEffectsAreSaid) {
  const auto tile = Decode(Bytes{0xc4, 0xe2, 0x7b, 0x4b, 0x04, 0x08}, 0);  // tileloadd
  ASSERT_TRUE(tile);
  EXPECT_FALSE(tile->effects_known);
  EXPECT_FALSE(Accesses(*tile, SomeRegisters()).complete());
}

TEST(Accesses, XsaveTakesTheSelectedComponents) {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & 1u << 27) == 0)
    GTEST_SKIP() << "no xsave";
  __cpuid_count(0xd, 2, eax, ebx, ecx, edx);
  if (eax == 0) GTEST_SKIP() << "no AVX state";
  RegisterFile registers = SomeRegisters();
  registers.gpr[kRax] = 7;
  registers.gpr[kRdx] = 0;
  const std::uint64_t area = 4 * kR;
  const MemoryAccess header{area + 512, 8, true, true, false};
  EXPECT_EQ(Of({0x48, 0x0f, 0xae, 0x23}, registers),
            (List{Write(area, 512), header, Write(area + ebx, eax)}));
  registers.gpr[kRax] = 4;
  EXPECT_EQ(Of({0x0f, 0xae, 0x2b}, registers), (List{Read(area + 512, 64), Read(area + ebx, eax)}));
}

Refusal RefusalAt(const Bytes& bytes, std::uint64_t rax_and_rsp) {
  RegisterFile registers = SomeRegisters();
  registers.gpr[kRax] = registers.gpr[kRsp] = rax_and_rsp;
  const auto instruction = Decode(bytes, registers.rip);
  EXPECT_TRUE(instruction);
  return instruction ? RefusalOf(*instruction, registers) : Refusal::kNone;
}

TEST(Refusals, AddressesThatAreNotAligned) {
  const Bytes movaps = {0x0f, 0x28, 0x00}, movups = {0x0f, 0x10, 0x00};
  const Bytes vmovdqa = {0xc5, 0xfd, 0x6f, 0x00}, vmovdqu = {0xc5, 0xfe, 0x6f, 0x00};
  const Bytes wide = {0x62, 0xf1, 0x7c, 0x48, 0x28, 0x00};  // vmovaps (%rax), %zmm0
  EXPECT_EQ(RefusalAt(movaps, 0x1010), Refusal::kNone);
  EXPECT_EQ(RefusalAt(movaps, 0x1008), Refusal::kProtection);
  EXPECT_EQ(RefusalAt(movups, 0x1008), Refusal::kNone);
  EXPECT_EQ(RefusalAt(vmovdqa, 0x1020), Refusal::kNone);
  EXPECT_EQ(RefusalAt(vmovdqa, 0x1010), Refusal::kProtection);
  EXPECT_EQ(RefusalAt(vmovdqu, 0x1001), Refusal::kNone);
  EXPECT_EQ(RefusalAt(wide, 0x1040), Refusal::kNone);
  EXPECT_EQ(RefusalAt(wide, 0x1020), Refusal::kProtection);
  EXPECT_EQ(RefusalAt({0x0f, 0xae, 0x00}, 0x1008), Refusal::kProtection);  // fxsave
  EXPECT_EQ(RefusalAt({0x0f, 0xae, 0x20}, 0x1020), Refusal::kProtection);  // xsave
}

TEST(Refusals, AddressesThatAreNotCanonical) {
  const Bytes load = {0x8b, 0x00}, push = {0x50}, of_stack = {0x8b, 0x04, 0x24};
  const Bytes by_fs = {0x64, 0x8b, 0x04, 0x24};
  for (const std::uint64_t address : {1ull << 47, 1ull << 63, ~0ull << 47}) {
    const bool canonical = address == ~0ull << 47;
    EXPECT_EQ(RefusalAt(load, address), canonical ? Refusal::kNone : Refusal::kProtection);
    EXPECT_EQ(RefusalAt(of_stack, address), canonical ? Refusal::kNone : Refusal::kStack);
  }
  EXPECT_EQ(RefusalAt(push, 1ull << 63), Refusal::kStack);
  EXPECT_EQ(RefusalAt(by_fs, 1ull << 63), Refusal::kProtection);
  EXPECT_EQ(RefusalAt(load, (1ull << 47) - 2), Refusal::kProtection) << "its end is not";
}

TEST(Decode, Branches) {
  const auto decode = [](const Bytes& bytes) { return Decode(bytes, 0x1000).value(); };
  EXPECT_EQ(decode({0xe8, 0xfb, 0xff, 0xff, 0xff}).branch, Branch::kCall);
  EXPECT_EQ(decode({0xe8, 0xfb, 0xff, 0xff, 0xff}).target, 0x1000u);
  EXPECT_EQ(decode({0x75, 0x10}).branch, Branch::kConditional);
  EXPECT_EQ(decode({0x75, 0x10}).target, 0x1012u);
  EXPECT_EQ(decode({0xeb, 0x80}).target, 0x0f82u);
  EXPECT_EQ(decode({0xff, 0xe0}).branch, Branch::kIndirectJump);
  EXPECT_EQ(decode({0xff, 0xd0}).branch, Branch::kIndirectCall);
  EXPECT_EQ(decode({0xf3, 0xc3}).branch, Branch::kReturn);
  EXPECT_EQ(decode({0x0f, 0x05}).branch, Branch::kSyscall);
  EXPECT_EQ(decode({0x0f, 0x0b}).branch, Branch::kOther);
}

// Behind as much code as decoding may begin in.
bool HoldsLocked(const Bytes& bytes) {
  const Bytes load = {0x48, 0x8b, 0x44, 0x24, 0x08};
  Bytes code;
  for (int i = 0; i < 40; ++i) code.insert(code.end(), load.begin(), load.end());
  code.insert(code.end(), bytes.begin(), bytes.end());
  code.insert(code.end(), load.begin(), load.end());
  const bool behind = MayHoldLockedInstruction(code);
  EXPECT_EQ(MayHoldLockedInstruction(bytes), behind) << "at the start";
  return behind;
}

TEST(LockedInstructions, AreFound) {
  EXPECT_TRUE(HoldsLocked({0xf0, 0x0f, 0xc1, 0x07})) << "lock xadd %eax,(%rdi)";
  EXPECT_TRUE(HoldsLocked({0x66, 0xf0, 0x0f, 0xc1, 0x07})) << "a prefix before it";
  EXPECT_TRUE(HoldsLocked({0xf0, 0x48, 0x0f, 0xb1, 0x97, 0, 1, 0, 0})) << "lock cmpxchg";
  EXPECT_TRUE(HoldsLocked({0xf2, 0xf0, 0x48, 0xff, 0x00})) << "xacquire lock incq";
  EXPECT_TRUE(HoldsLocked({0x48, 0x87, 0x07})) << "xchg %rax,(%rdi)";
  EXPECT_TRUE(HoldsLocked({0xc4, 0xe2, 0x69, 0xe6, 0x07})) << "cmpbexadd %edx,%eax,(%rdi)";
  EXPECT_TRUE(HoldsLocked({0x0f, 0x38, 0xfc, 0x07})) << "aadd %eax,(%rdi)";
  EXPECT_TRUE(HoldsLocked({0x86, 0x44, 0x24, 0x08})) << "xchg %al,8(%rsp)";
}

TEST(LockedInstructions, BytesOfOthersAreNone) {
  EXPECT_FALSE(HoldsLocked({0x90, 0xc3})) << "nop";
  EXPECT_FALSE(HoldsLocked({0x48, 0x87, 0xc3})) << "xchg of registers";
  EXPECT_FALSE(HoldsLocked({0x66, 0x90})) << "xchg %ax,%ax";
  EXPECT_FALSE(HoldsLocked({0x8b, 0x87, 0x07, 0, 0, 0})) << "mov 7(%rdi),%eax: ModRM is 87h";
  EXPECT_FALSE(HoldsLocked({0xb8, 0xf0, 0x0f, 0xc1, 0x07})) << "mov $0x7c10ff0,%eax";
  EXPECT_FALSE(HoldsLocked({0x48, 0xb8, 0x48, 0x87, 0x07, 0xf0, 0xff, 0x00, 0, 0})) << "movabs";
  EXPECT_FALSE(HoldsLocked({0x0f, 0xb1, 0x17})) << "cmpxchg without the prefix";
  EXPECT_FALSE(HoldsLocked({}));
}

}  // namespace
}  // namespace trapline
