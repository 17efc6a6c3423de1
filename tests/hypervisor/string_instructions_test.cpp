// Repeated stores and copies that the monitor carries out.
#include "hypervisor/string_instructions.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "shadow-pages/address.h"

namespace trapline {
namespace {

constexpr std::uint64_t kDirectionFlag = 0x400;

Instruction In(std::initializer_list<std::uint8_t> bytes) {
  const std::vector<std::uint8_t> code(bytes);
  return *Decode({code.data(), code.size()}, 0x1000);
}

const Instruction kRepStosb = In({0xf3, 0xaa}), kRepStosd = In({0xf3, 0xab}),
                  kRepMovsb = In({0xf3, 0xa4}), kRepMovsq = In({0xf3, 0x48, 0xa5});

std::uint64_t AddressOf(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

TEST(StringInstructions, StoresBytes) {
  std::string memory = "........";
  kvm_regs registers{};
  registers.rdi = AddressOf(memory.data() + 1);
  registers.rax = 'a';
  registers.rcx = 3;
  EXPECT_TRUE(CarryOutRepeats(kRepStosb, 0, registers));
  EXPECT_EQ(memory, ".aaa....");
  EXPECT_EQ(registers.rdi, AddressOf(memory.data() + 4));
  EXPECT_EQ(registers.rcx, 0u);
}

TEST(StringInstructions, StoresElements) {
  std::string memory = "..........";
  kvm_regs registers{};
  registers.rdi = AddressOf(memory.data());
  registers.rax = 0x64636261;
  registers.rcx = 2;
  EXPECT_TRUE(CarryOutRepeats(kRepStosd, 0, registers));
  EXPECT_EQ(memory, "abcdabcd..");
}

TEST(StringInstructions, Copies) {
  std::string from = "0123456789abcdefgh", to(18, '.');
  kvm_regs registers{};
  registers.rsi = AddressOf(from.data());
  registers.rdi = AddressOf(to.data());
  registers.rcx = 2;
  EXPECT_TRUE(CarryOutRepeats(kRepMovsq, 0, registers));
  EXPECT_EQ(to, "0123456789abcdef..");
  EXPECT_EQ(registers.rsi, AddressOf(from.data() + 16));
  EXPECT_EQ(registers.rdi, AddressOf(to.data() + 16));
  EXPECT_EQ(registers.rcx, 0u);
}

TEST(StringInstructions, CopiesToOverlappingMemoryBefore) {
  std::string memory = "..abcd";
  kvm_regs registers{};
  registers.rsi = AddressOf(memory.data() + 2);
  registers.rdi = AddressOf(memory.data());
  registers.rcx = 4;
  EXPECT_TRUE(CarryOutRepeats(kRepMovsb, 0, registers));
  EXPECT_EQ(memory, "abcdcd");
}

TEST(StringInstructions, DoesOneMebibyteAtOnce) {
  std::vector<char> memory((1 << 20) + 5);
  kvm_regs registers{};
  registers.rdi = AddressOf(memory.data());
  registers.rax = 'a';
  registers.rcx = memory.size();
  EXPECT_TRUE(CarryOutRepeats(kRepStosb, 0, registers));
  EXPECT_EQ(registers.rcx, 5u);
  EXPECT_EQ(memory[(1 << 20) - 1], 'a');
  EXPECT_EQ(memory[1 << 20], 0);
}

void ExpectRefused(const Instruction& instruction, std::uint64_t flags, kvm_regs registers) {
  const kvm_regs before = registers;
  EXPECT_FALSE(CarryOutRepeats(instruction, flags, registers));
  EXPECT_EQ(registers.rsi, before.rsi);
  EXPECT_EQ(registers.rdi, before.rdi);
  EXPECT_EQ(registers.rcx, before.rcx);
}

TEST(StringInstructions, LeavesTheRestToTheProcessor) {
  std::string memory = "abcdef";
  kvm_regs registers{};
  registers.rsi = AddressOf(memory.data());
  registers.rdi = AddressOf(memory.data() + 1);
  registers.rcx = 3;
  ExpectRefused(kRepMovsb, 0, registers);  // overlapping memory behind
  ExpectRefused(kRepStosb, kDirectionFlag, registers);
  ExpectRefused(In({0xaa}), 0, registers);              // once
  ExpectRefused(In({0xf3, 0xa6}), 0, registers);        // repe cmpsb
  ExpectRefused(In({0xf3, 0xac}), 0, registers);        // rep lodsb
  ExpectRefused(In({0x67, 0xf3, 0xaa}), 0, registers);  // EDI
  ExpectRefused(In({0x64, 0xf3, 0xa4}), 0, registers);  // FS
  registers.rcx = 0;
  ExpectRefused(kRepStosb, 0, registers);
  EXPECT_EQ(memory, "abcdef");
}

TEST(StringInstructions, LeavesMemoryThatIsNotThereToTheProcessor) {
  void* const area =
      mmap(nullptr, 2 * kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(area, MAP_FAILED);
  char* const memory = static_cast<char*>(area);
  ASSERT_EQ(munmap(memory + kPageSize, kPageSize), 0);
  kvm_regs registers{};
  registers.rcx = 8;
  registers.rdi = AddressOf(memory + kPageSize - 4);
  ExpectRefused(kRepStosb, 0, registers);
  registers.rsi = AddressOf(memory + kPageSize - 4);
  registers.rdi = AddressOf(memory);
  ExpectRefused(kRepMovsb, 0, registers);
  munmap(memory, kPageSize);
}

}  // namespace
}  // namespace trapline
