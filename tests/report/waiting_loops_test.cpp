// Loops as compilers make them, in assembly: the labels are the loads that are asked about.
#include "tools/waiting_loops.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

asm(R"(
.pushsection .text, "ax", @progbits
.p2align 10
# GCC's loop around sched_yield, by way of the linker's stub.
1: call yield_stub
yields: movzbl word(%rip), %eax
  test %al, %al
  je 1b
  ret
# The same in code without stubs.
2: call *yield_slot(%rip)
yields_directly: cmpb $0, word(%rip)
  je 2b
  ret
# Turns taken, with a backoff: two loads of the word, either may be the last one.
takes_turn: movslq word(%rip), %rax
  cmp %rbp, %rax
  je 4f
3: pause
  add $1, %ebx
  cmp $100, %ebx
  jle takes_turn
  call yield_stub
takes_turn_again: movslq word(%rip), %rax
  cmp %rbp, %rax
  jne 3b
4: addq $1, other(%rip)
  jmp takes_turn
# oneTBB's: the first load stands before the loop.
first_of_loop: mov 8(%rbp), %rax
  cmp %rax, %r14
  je 9f
  mov $1, %ebx
5: cmp $16, %ebx
  jg 8f
  lea -1(%rbx), %eax
6: pause
  sub $1, %eax
  jae 6b
  add %ebx, %ebx
7: mov 8(%rbp), %rax
  cmp %rax, %r14
  jne 5b
9: ret
8: call yield_stub
  jmp 7b
# The time to sleep is stored on the stack.
10: movq $0, (%rsp)
  movq $1000, 8(%rsp)
  mov %rsp, %rdi
  call sleep_stub
sleeps: mov (%rbx), %rax
  test %rax, %rax
  je 10b
  ret
# Linked statically.
17: call yield_function
calls_directly: cmpl $0, word(%rip)
  je 17b
  ret
# In the kernel, by the C library's syscall.
18: mov %eax, %ecx
  xor %r8d, %r8d
  mov $128, %edx
  lea word(%rip), %rsi
  sub $8, %rsp
  push $0
  mov $202, %edi
  xor %eax, %eax
  call syscall_stub
  pop %rax
  pop %rdx
waits_for_futex: mov word(%rip), %eax
  test %eax, %eax
  je 18b
  ret
# Or without it.
19: mov %rbx, %rdi
  mov $202, %eax
  syscall
waits_in_kernel: cmpl $0, (%rbx)
  je 19b
  ret
25: mov %r8, %rax
  syscall
waits_by_register: cmpl $0, word(%rip)
  je 25b
  ret
# The first load is at a place that the others have in a register.
first_by_name: mov word(%rip), %eax
  test %eax, %eax
  jne 21f
  lea word(%rip), %rbx
20: call yield_stub
  mov (%rbx), %eax
  test %eax, %eax
  je 20b
21: ret

# Likewise, of an object.
first_of_object: movzbl 8(%r15), %eax
  lea 8(%r15), %rcx
  test %al, %al
  jne 27f
26: pause
  movzbl (%rcx), %eax
  test %al, %al
  je 26b
27: ret
# Likewise, with the place put on the stack while it yields.
first_then_saved: movzbl 8(%r15), %eax
  lea 8(%r15), %rcx
  test %al, %al
  jne 29f
28: mov %rcx, 128(%rsp)
  call yield_stub
  mov 128(%rsp), %rcx
  movzbl (%rcx), %eax
  test %al, %al
  je 28b
29: ret
# The function's address is loaded ahead.
first_then_address: movzbl word(%rip), %eax
  test %al, %al
  jne 33f
  mov yield_slot(%rip), %rbx
32: call *%rbx
  movzbl word(%rip), %eax
  test %al, %al
  je 32b
33: ret
# Another place is taken from the stack.
first_not_saved: movzbl 8(%r15), %eax
  lea 8(%r15), %rcx
  test %al, %al
  jne 31f
30: mov %rcx, 128(%rsp)
  call yield_stub
  mov 120(%rsp), %rcx
  movzbl (%rcx), %eax
  test %al, %al
  je 30b
31: ret
# Another system call.
22: mov $1, %edi
  call syscall_stub
writes: cmpl $0, word(%rip)
  je 22b
  ret
# The first load is from elsewhere.
first_elsewhere: mov other(%rip), %eax
  test %eax, %eax
  jne 24f
  lea word(%rip), %rbx
23: call yield_stub
  mov (%rbx), %eax
  test %eax, %eax
  je 23b
24: ret
# It works meanwhile.
11: call work_stub
works: movzbl word(%rip), %eax
  test %al, %al
  je 11b
  ret
# It stores what it has counted.
stores: cmpl $0, word(%rip)
  jne 12f
  addl $1, other(%rip)
  jmp stores
12: ret
# A search: each time another address.
searches: cmpl %esi, (%rdi)
  je 13f
  add $4, %rdi
  jmp searches
13: ret
# A list.
follows: mov (%rdi), %rdi
  test %rdi, %rdi
  jne follows
  ret
# A sum whose bound is in memory: what it adds changes its address.
bounds: cmp word(%rip), %rcx
  jge 14f
  add (%rdi,%rcx,8), %rax
  add $1, %rcx
  jmp bounds
14: ret
# A sequence lock's data: the loop does not depend on it.
15: mov word(%rip), %eax
unused: mov other(%rip), %rdx
  test $1, %al
  jne 15b
  mov word(%rip), %ecx
  cmp %ecx, %eax
  jne 15b
  ret
# No loop.
once: cmpl $0, word(%rip)
  je 16f
  call yield_stub
16: ret
# By a locked instruction.
locked: lock cmpxchg %ecx, word(%rip)
  jne locked
  ret
# Each thread has its own.
of_thread: cmpl $0, %fs:16
  je of_thread
  ret
# rustc's: a function of the module's own, by an address of the linker's that is loaded ahead of the
# loop.
  mov own_slot(%rip), %rbx
  mov 40(%rsp), %r14
  nopw (%rax,%rax)
own_loaded_before: movzbl word(%rip), %eax
  test %al, %al
  jne 17f
  call *%rbx
  jmp own_loaded_before
17: ret
# Another one.
  mov own_work_slot(%rip), %rbx
works_loaded_before: movzbl word(%rip), %eax
  test %al, %al
  jne 18f
  call *%rbx
  jmp works_loaded_before
18: ret
# The register has got another value since.
  mov own_slot(%rip), %rbx
  mov %r14, %rbx
written_since: movzbl word(%rip), %eax
  test %al, %al
  jne 19f
  call *%rbx
  jmp written_since
19: ret
# Or may have by a call.
  mov own_slot(%rip), %rax
  call work_stub
called_since: cmpb $0, word(%rip)
  jne 20f
  call *%rax
  jmp called_since
20: ret
# std::atomic::wait as GCC inlines it: the first look; what counts those who wait; spins whose word is
# on the stack, or in another register; the kernel's wait, and another look.
waits_inlined: mov word(%rip), %ebx
  cmp %r14d, %ebx
  je 44f
  lock addl $1, other(%rip)
40: mov %r12, 32(%rsp)
  mov %rbp, %rax
  mov %rbp, %r12
  mov %ebx, 16(%rsp)
  movl $2, 24(%rsp)
  jmp waits_by_saved
41: pause
  add $1, %r15d
  mov 32(%rsp), %rax
waits_by_saved: mov (%rax), %eax
  cmp %eax, 16(%rsp)
  jne 43f
  cmp $11, %r15d
  jle 41b
  mov %rbp, %rsi
  mov $202, %edi
  call syscall_stub
  test %rax, %rax
  jne 45f
waits_again: mov word(%rip), %eax
  cmp %eax, %ebx
  je 40b
43: lock subl $1, other(%rip)
44: ret
45: hlt
# What counts stands in the loop.
46: lock addl $1, other(%rip)
counts: cmpl $0, word(%rip)
  je 46b
  ret
# A member of an object whose address is loaded each time.
47: call yield_stub
pointer: mov word(%rip), %rax
  mov 24(%rax), %rax
member: cmpb $0, 8(%rax)
  je 47b
  ret
# In a loop that lets no time pass that may be a search.
searches_member: mov (%rbx), %rax
  cmp %rbp, 8(%rax)
  je 48f
  add $1, %ecx
  cmp %edx, %ecx
  jb searches_member
48: ret
# A list, however slowly.
49: pause
follows_slowly: mov 8(%rdi), %rdi
  test %rdi, %rdi
  jne 49b
  ret
# Two places in turns.
50: pause
  xchg %rdi, %rsi
two_places: cmpl $0, (%rdi)
  je 50b
  ret
51: pause
  mov %rdi, %rax
  mov %rsi, %rdi
  mov %rax, %rsi
moved_places: cmpl $0, 4(%rdi)
  je 51b
  ret
# Not optimised: what it finds lies on the stack first.
52: call yield_stub
unoptimised: mov word(%rip), %eax
  mov %eax, -20(%rbp)
  cmpl $0, -20(%rbp)
  setne %al
  xor $-1, %al
  test $1, %al
  jne 52b
  ret
# Something else lies there.
53: call yield_stub
other_on_stack: mov word(%rip), %eax
  mov %eax, -20(%rbp)
  cmpl $0, -24(%rbp)
  je 53b
  ret
# An object by the register that may be the frame's.
54: addl $1, 20(%rbp)
  pause
counts_in_object: cmpl $0, word(%rip)
  je 54b
  ret
# A number of rax's own encodings.
compares_rax: mov word(%rip), %eax
  cmp $0x12345, %eax
  jne compares_rax
  ret
# An element whose index the loop changes.
55: pause
  inc %ecx
element: cmpl $0, (%rdi,%rcx,4)
  je 55b
  ret
# An index that the stack has, and what is stored over it.
56: pause
  mov 8(%rsp), %rcx
fixed_element: cmpl $0, (%rdi,%rcx,4)
  je 56b
  ret
57: pause
  mov 8(%rsp), %rcx
  incl 12(%rsp)
changed_element: cmpl $0, (%rdi,%rcx,4)
  je 57b
  ret
# Another element than the first look's: the index is scaled.
first_of_array: cmpl $0, 3(%rdi)
  jne 59f
  mov $3, %ecx
  lea (%rdi,%rcx,8), %rdx
58: pause
  cmpl $0, (%rdx)
  je 58b
59: ret
# The loop around it changes the address.
60: mov %rcx, %rdx
  jmp each_word
61: nop
each_word: mov (%rdx), %rax
  test %rax, %rax
  jne 61b
  add $8, %rcx
  cmp %r15, %rcx
  jne 60b
  ret
# Each word is looked at once.
62: add $8, %rcx
once_each_word: mov (%rcx), %rax
  test %rax, %rax
  jne 62b
  add $16, %rcx
  cmp %r15, %rcx
  jne once_each_word
  ret
# OpenBLAS's: by the time it sleeps, or does something else.
63: rdtsc
  mov %eax, %ecx
sleeps_late: mov (%rbx), %rdx
  test %rdx, %rdx
  jne 64f
  mfence
  rdtsc
  sub %ecx, %eax
  cmp $0x100000, %eax
  jbe sleeps_late
  mov %rbp, %rdi
  call work_stub
  movl $2, 8(%r15,%r13,8)
  jmp 63b
64: call *(%rdx)
  movq $0, (%rbx)
  jmp 63b
# What it looks at again while it sleeps.
67: rdtsc
  mov %eax, %ecx
68: mov (%rbx), %rdx
  test %rdx, %rdx
  jne 64b
  pause
  rdtsc
  sub %ecx, %eax
  cmp $0x100000, %eax
  jbe 68b
69: mov %rbp, %rdi
  call lock_stub
sleeping: mov (%rbx), %rdx
  test %rdx, %rdx
  je 69b
  mov %rbp, %rdi
  call lock_stub
  jmp 67b
# A predicate under a mutex: no loop without it.
70: mov %rbp, %rdi
  call lock_stub
predicate: mov (%rbx), %rdx
  test %rdx, %rdx
  je 70b
  ret
# By the clock.
65: lea 8(%rsp), %rsi
  call clock_stub
  mov 8(%rsp), %rax
  cmp %r12, %rax
  ja 66f
until_time: mov (%rbx), %rdx
  test %rdx, %rdx
  je 65b
66: ret
own_yield: jmp *yield_slot(%rip)
own_work: jmp *work_slot(%rip)
yield_function: mov $24, %eax
  syscall
  ret
yield_stub: endbr64
  jmp *yield_slot(%rip)
sleep_stub: jmp *sleep_slot(%rip)
work_stub: jmp *work_slot(%rip)
clock_stub: jmp *clock_slot(%rip)
lock_stub: jmp *lock_slot(%rip)
syscall_stub: jmp *syscall_slot(%rip)
.popsection
.pushsection .data
.p2align 6
word: .quad 0
other: .quad 0
yield_slot: .quad 0
sleep_slot: .quad 0
work_slot: .quad 0
clock_slot: .quad 0
lock_slot: .quad 0
syscall_slot: .quad 0
own_slot: .quad 0
own_work_slot: .quad 0
.popsection
)");

extern "C" {
extern const char yields[], yields_directly[], takes_turn[], takes_turn_again[], first_of_loop[],
    sleeps[], works[], stores[], searches[], follows[], bounds[], unused[], once[], locked[],
    of_thread[], waits_by_register[], first_of_object[], first_then_address[], first_then_saved[],
    first_not_saved[], waits_for_futex[], waits_in_kernel[], first_by_name[], writes[],
    first_elsewhere[], syscall_slot[], calls_directly[], yield_function[], yield_slot[],
    sleep_slot[], work_slot[], own_loaded_before[], works_loaded_before[], written_since[],
    waits_inlined[], waits_by_saved[], waits_again[], counts[], pointer[], member[],
    searches_member[], follows_slowly[], two_places[], moved_places[], unoptimised[],
    other_on_stack[], counts_in_object[], compares_rax[], element[], fixed_element[],
    changed_element[], first_of_array[], called_since[], own_yield[], own_work[], own_slot[],
    own_work_slot[], each_word[], once_each_word[], sleeps_late[], until_time[], clock_slot[],
    sleeping[], predicate[], lock_slot[];
}

namespace trapline {
namespace {

std::uint64_t AddressOf(const char* label) { return reinterpret_cast<std::uint64_t>(label); }

class WaitingLoopsTest : public testing::Test {
 protected:
  bool Waits(const char* label) {
    const std::uint64_t ip = AddressOf(label);
    const bool waits = loops_.Repeat(ip);
    std::array<unsigned char, 64> code;
    std::memcpy(code.data(), label, code.size());
    EXPECT_TRUE(!waits || WaitingLoops::MayRepeat(ip, code));
    return waits;
  }

  std::map<std::uint64_t, std::string> functions_,
      imports_ = {
          {AddressOf(yield_slot), "sched_yield"},   {AddressOf(sleep_slot), "nanosleep"},
          {AddressOf(syscall_slot), "syscall"},     {AddressOf(work_slot), "work"},
          {AddressOf(clock_slot), "clock_gettime"}, {AddressOf(lock_slot), "pthread_mutex_lock"}};
  std::map<std::uint64_t, std::uint64_t> pointers_ = {
      {AddressOf(own_slot), AddressOf(own_yield)}, {AddressOf(own_work_slot), AddressOf(own_work)}};
  std::uint32_t generation_ = 1;
  unsigned reads_ = 0;
  WaitingLoops loops_{
      CodeSource{.read = [this](std::uint64_t address, void* out, std::size_t size) -> std::size_t {
                   ++reads_;
                   std::memcpy(out, reinterpret_cast<const void*>(address), size);
                   return size;
                 },
                 .function_at = [this](std::uint64_t address) { return functions_[address]; },
                 .import_at =
                     [this](std::uint64_t slot) {
                       return StoredAddress{imports_[slot], pointers_[slot]};
                     },
                 .generation = [this] { return generation_; }}};
};

TEST_F(WaitingLoopsTest, LoadsOfLoopsThatDoNothingElse) {
  EXPECT_TRUE(Waits(yields));
  EXPECT_TRUE(Waits(yields_directly));
  EXPECT_TRUE(Waits(takes_turn));
  EXPECT_TRUE(Waits(takes_turn_again));
  EXPECT_TRUE(Waits(first_of_loop));
  EXPECT_TRUE(Waits(sleeps));
  EXPECT_TRUE(Waits(waits_for_futex));
  EXPECT_TRUE(Waits(waits_in_kernel));
  EXPECT_TRUE(Waits(waits_by_register));
  EXPECT_TRUE(Waits(first_by_name));
  EXPECT_TRUE(Waits(first_of_object));
  EXPECT_TRUE(Waits(first_then_saved));
  EXPECT_TRUE(Waits(first_then_address));
  EXPECT_TRUE(Waits(own_loaded_before));
  EXPECT_TRUE(Waits(waits_inlined));
  EXPECT_TRUE(Waits(waits_by_saved));
  EXPECT_TRUE(Waits(waits_again));
  EXPECT_TRUE(Waits(member));
  EXPECT_TRUE(Waits(moved_places));
  EXPECT_TRUE(Waits(unoptimised));
  EXPECT_TRUE(Waits(compares_rax));
  EXPECT_TRUE(Waits(fixed_element));
  EXPECT_TRUE(Waits(each_word));
  EXPECT_TRUE(Waits(sleeps_late));
  EXPECT_TRUE(Waits(sleeping));
  EXPECT_TRUE(Waits(until_time));
}

TEST_F(WaitingLoopsTest, OtherLoads) {
  EXPECT_FALSE(Waits(works));
  EXPECT_FALSE(Waits(stores));
  EXPECT_FALSE(Waits(searches));
  EXPECT_FALSE(Waits(follows));
  EXPECT_FALSE(Waits(bounds));
  EXPECT_FALSE(Waits(unused));
  EXPECT_FALSE(Waits(once));
  EXPECT_FALSE(Waits(locked));
  EXPECT_FALSE(Waits(of_thread));
  EXPECT_FALSE(Waits(first_not_saved));
  EXPECT_FALSE(Waits(writes));
  EXPECT_FALSE(Waits(first_elsewhere));
  EXPECT_FALSE(Waits(works_loaded_before));
  EXPECT_FALSE(Waits(written_since));
  EXPECT_FALSE(Waits(called_since));
  EXPECT_FALSE(Waits(counts));
  EXPECT_FALSE(Waits(pointer));
  EXPECT_FALSE(Waits(searches_member));
  EXPECT_FALSE(Waits(follows_slowly));
  EXPECT_FALSE(Waits(two_places));
  EXPECT_FALSE(Waits(other_on_stack));
  EXPECT_FALSE(Waits(counts_in_object));
  EXPECT_FALSE(Waits(element));
  EXPECT_FALSE(Waits(changed_element));
  EXPECT_FALSE(Waits(first_of_array));
  EXPECT_FALSE(Waits(once_each_word));
  EXPECT_FALSE(Waits(predicate));
}

TEST_F(WaitingLoopsTest, WhatIsCalledIsKnownByName) {
  imports_.erase(AddressOf(yield_slot));
  EXPECT_FALSE(Waits(yields));
  EXPECT_FALSE(Waits(yields_directly));
  EXPECT_TRUE(Waits(takes_turn)) << "by the way without a call";
  imports_[AddressOf(work_slot)] = "usleep";
  EXPECT_TRUE(Waits(works));
  EXPECT_FALSE(Waits(calls_directly));
  functions_[AddressOf(yield_function)] = "sched_yield";
  EXPECT_TRUE(Waits(calls_directly));
  functions_[AddressOf(yield_function)] = "_RNvNtNtCsjrHSEGnQ3l9_3std6thread9functions9yield_now";
  EXPECT_TRUE(Waits(calls_directly)) << "Rust's newer mangling";
}

TEST_F(WaitingLoopsTest, CodeIsReadOnceUntilItChanges) {
  EXPECT_TRUE(Waits(yields));
  const unsigned once_each = reads_;
  EXPECT_TRUE(Waits(yields));
  EXPECT_EQ(reads_, once_each);
  ++generation_;
  EXPECT_TRUE(Waits(yields));
  EXPECT_EQ(reads_, 2 * once_each);
}

TEST_F(WaitingLoopsTest, CodeThatCannotBeReadIsNoLoop) {
  WaitingLoops nothing{CodeSource{.read = [](auto, void*, auto) { return 0; },
                                  .function_at = [](auto) { return ""; },
                                  .import_at = [](auto) { return StoredAddress(); },
                                  .generation = [] { return 0; }}};
  EXPECT_FALSE(nothing.Repeat(AddressOf(yields)));
}

}  // namespace
}  // namespace trapline
