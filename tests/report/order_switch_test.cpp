#include "tools/order_switch.h"

#include <gtest/gtest.h>

#include <cstring>

namespace trapline {
namespace {

// As clang makes them of loads and stores of any order; the labels are the instructions asked for.
asm(R"(
.pushsection .text, "ax", @progbits
.p2align 6
switches: .fill 128, 1, 0x90
  mov -0x78(%rbp), %rax
load_relaxed: mov (%rax), %eax
  mov %eax, -0x14(%rbp)
  jmp 1f
  mov -0x78(%rbp), %rax
load_acquire: mov (%rax), %eax
  mov %eax, -0x14(%rbp)
  jmp 1f
  mov -0x78(%rbp), %rax
load_last: mov (%rax), %eax
  mov %eax, -0x14(%rbp)
  jmp 1f
  nop
1: ret
  mov -0x70(%rbp), %rax
  mov -0x118(%rbp), %cx
store_relaxed: mov %cx, (%rax)
  jmp 2f
  mov -0x70(%rbp), %rax
  mov -0x118(%rbp), %cx
store_release: mov %cx, (%rax)
  jmp 2f
  mov -0x70(%rbp), %rcx
  mov -0x118(%rbp), %ax
store_last: xchg %ax, (%rcx)
2: ret
  mov -0x78(%rbp), %rax
twice: mov (%rax), %al
  mov %al, -0x14(%rbp)
  jmp 3f
  mov -0x78(%rbp), %rax
  mov (%rax), %al
  mov %al, -0x14(%rbp)
  jmp 3f
  mov -0x70(%rbp), %rax
of_others: mov (%rax), %al
  mov %al, -0x14(%rbp)
3: ret
  mov -0x70(%rbp), %rax
  mov -0x18(%rbp), %ecx
never_exchanged: mov %ecx, (%rax)
  jmp 4f
  mov -0x70(%rbp), %rax
  mov -0x18(%rbp), %ecx
  mov %ecx, (%rax)
  jmp 4f
  mov -0x70(%rbp), %rax
  mov -0x18(%rbp), %ecx
  mov %ecx, (%rax)
4: ret
  mov -0x78(%rbp), %rax
of_ways: mov (%rax), %rcx
  mov %rcx, -0x20(%rbp)
  jmp 5f
  mov -0x78(%rbp), %rax
  mov (%rax), %rcx
  mov %rcx, -0x20(%rbp)
  jmp 6f
  mov -0x78(%rbp), %rax
  mov (%rax), %rcx
  mov %rcx, -0x20(%rbp)
  jmp 5f
5: nop
6: ret
.fill 128, 1, 0x90
.popsection
)");

extern "C" {
extern const unsigned char switches[], load_relaxed[], load_acquire[], load_last[], store_relaxed[],
    store_release[], store_last[], twice[], of_others[], never_exchanged[], of_ways[];
}

bool IsFound(const unsigned char* at) {
  return IsInOrderSwitch(std::span<const unsigned char, 2 * kOrderSwitchReach>(
                             at - kOrderSwitchReach, 2 * kOrderSwitchReach),
                         reinterpret_cast<std::uint64_t>(at));
}

TEST(OrderSwitch, EachArmOfALoad) {
  EXPECT_TRUE(IsFound(load_relaxed));
  EXPECT_TRUE(IsFound(load_acquire));
  EXPECT_TRUE(IsFound(load_last));
}

TEST(OrderSwitch, EachArmOfAStoreThatIsNotLocked) {
  EXPECT_TRUE(IsFound(store_relaxed));
  EXPECT_TRUE(IsFound(store_release));
  EXPECT_FALSE(IsFound(store_last));
}

TEST(OrderSwitch, NotWhatIsNearlyAlike) {
  EXPECT_FALSE(IsFound(twice));
  EXPECT_FALSE(IsFound(of_others));
  EXPECT_FALSE(IsFound(never_exchanged));
  EXPECT_FALSE(IsFound(of_ways));
  EXPECT_FALSE(IsFound(load_relaxed - 4));  // where the address is, not what is there
}

TEST(OrderSwitch, AnyBytes) {
  unsigned char code[2 * kOrderSwitchReach];
  unsigned state = 1;
  for (int round = 0; round < 2000; ++round) {
    std::memcpy(code, switches + (load_acquire - switches) - kOrderSwitchReach, sizeof code);
    for (int change = 0; change < 1 + round % 5; ++change) {
      state = state * 1664525 + 1013904223;
      code[state >> 8 & 127] = static_cast<unsigned char>(state >> 24);
    }
    IsFound(code + kOrderSwitchReach);
  }
}

}  // namespace
}  // namespace trapline
