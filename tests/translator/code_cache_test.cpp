// The code cache against the trap flag: same results, same accesses in the same order.
#include "translator/code_cache.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "tests/translator/tracer.h"

namespace trapline {
namespace {

// Runs `function` three times, `prepare` before each: natively (lazy binding), by steps, in the
// cache.
void ExpectSame(
    const void* function, const Arguments& arguments, const std::function<void()>& prepare = [] {},
    const TranslatorOptions& options = {}) {
  prepare();
  const std::uint64_t native = RunNatively(function, arguments);
  prepare();
  const TracedRun steps = RunBySingleSteps(function, arguments);
  ASSERT_EQ(steps.failure, "");
  EXPECT_EQ(steps.result, native);
  prepare();
  const TracedRun cached = RunInCache(function, arguments, options);
  ASSERT_EQ(cached.failure, "");
  EXPECT_EQ(cached.result, native);
  EXPECT_GT(steps.accesses.size(), 0u);
  const std::size_t both = std::min(steps.accesses.size(), cached.accesses.size());
  for (std::size_t i = 0; i < both; ++i) {
    ASSERT_EQ(steps.accesses[i], cached.accesses[i])
        << "access " << i << ": stepped " << Text(steps.accesses[i]) << ", cached "
        << Text(cached.accesses[i]);
  }
  EXPECT_EQ(steps.accesses.size(), cached.accesses.size());
}

template <typename Function>
const void* Pointer(Function* function) {
  return reinterpret_cast<const void*>(function);
}
std::uint64_t Value(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

constexpr unsigned kCount = 300;
std::uint32_t g_numbers[kCount];
std::uint8_t g_bytes[4096];
std::uint8_t g_copy[4096];

void FillNumbers() {
  std::uint32_t value = 12345;
  for (std::uint32_t& number : g_numbers) number = value = value * 1664525 + 1013904223;
  for (unsigned i = 0; i < sizeof g_bytes; ++i)
    g_bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  std::memset(g_copy, 0, sizeof g_copy);
}

__attribute__((noinline)) std::uint64_t SumNumbers(const std::uint32_t* from, std::uint64_t count) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) sum = sum * 3 + from[i];
  return sum;
}
TEST(CodeCache, Loop) { ExpectSame(Pointer(SumNumbers), {Value(g_numbers), kCount}, FillNumbers); }

// A loop whose instructions name all registers that a loop may keep saved, around loops that name
// different ones: branched out of and into each other's middle.
extern "C" std::uint64_t LoopsInALoop(const std::uint32_t* from, std::uint64_t count);
__asm__(R"(
    .text
LoopsInALoop:
    push %r14
    push %r15
    mov %rdi, %r8
    mov %rsi, %r9
    xor %eax, %eax
    xor %r10d, %r10d
    xor %r11d, %r11d
    xor %r14d, %r14d
    mov $5, %r15d
1:  mov (%r8), %ecx
    and $7, %ecx
    add %rcx, %r15
    inc %ecx
2:  add (%r8), %eax          # of the first: r8
    test $1, %al
    jz 3f
    imul $3, %eax, %eax
3:  add 8(%rdi), %eax
    dec %ecx
    jnz 2b
    mov %eax, %edx
    and $3, %edx
    jz 6f
4:  add %r9, %r14            # of the second: r9 and r14
    xor 4(%rdi), %r14d
    cmp $2, %edx
    je 5f
    dec %edx
    jnz 4b
    jmp 6f
5:  add $1, %r10
6:  add %r14, %rax
    inc %r11
    test $3, %r11d
    jnz 7f
    mov $1, %ecx
    jmp 3b
7:  add $4, %r8
    dec %r9
    jnz 1b
    add %r15, %rax
    add %r10, %rax
    pop %r15
    pop %r14
    ret
)");
TEST(CodeCache, LoopsInALoop) {
  ExpectSame(Pointer(LoopsInALoop), {Value(g_numbers), 100}, FillNumbers);
}

// 16 bytes each.
__attribute__((noinline)) std::uint64_t LoadSixteen(const std::uint8_t* from, std::uint64_t times) {
  for (; times > 0; --times, from += 16) asm volatile("movups (%0), %%xmm0" : : "r"(from) : "xmm0");
  return 0;
}

__attribute__((noinline)) std::uint64_t Fibonacci(std::uint64_t n) {
  return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2);
}
TEST(CodeCache, Recursion) { ExpectSame(Pointer(Fibonacci), {12}); }

int CompareNumbers(const void* a, const void* b) {
  const auto x = *static_cast<const std::uint32_t*>(a);
  const auto y = *static_cast<const std::uint32_t*>(b);
  return x < y ? -1 : x > y;
}
__attribute__((noinline)) std::uint64_t Sort(std::uint32_t* numbers, std::uint64_t count) {
  std::qsort(numbers, count, sizeof *numbers, CompareNumbers);
  return numbers[0] + std::uint64_t{numbers[count - 1]} * 2;
}
TEST(CodeCache, LibraryCallsBack) {
  ExpectSame(Pointer(Sort), {Value(g_numbers), 100}, FillNumbers);
  EXPECT_TRUE(std::is_sorted(g_numbers, g_numbers + 100));
}

__attribute__((noinline)) std::uint64_t Switch(const std::uint8_t* bytes, std::uint64_t count) {
  std::uint64_t value = 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    switch (bytes[i] & 15) {
      case 0:
        value += 3;
        break;
      case 1:
        value ^= i;
        break;
      case 2:
        value = value << 3 | value >> 61;
        break;
      case 3:
        value -= bytes[i];
        break;
      case 4:
        value *= 5;
        break;
      case 5:
        value = ~value;
        break;
      case 6:
        value += value >> 7;
        break;
      case 9:
        value ^= 0x55;
        break;
      default:
        value += i;
        break;
    }
  }
  return value;
}
TEST(CodeCache, SwitchTable) { ExpectSame(Pointer(Switch), {Value(g_bytes), 500}, FillNumbers); }

__attribute__((noinline)) std::uint64_t CopyAndCompare(std::uint8_t* to, const std::uint8_t* from,
                                                       std::uint64_t size) {
  std::uint64_t different = 0;
  for (std::uint64_t part = 1; part < size; part = part * 2 + 1) {
    std::memcpy(to, from, part);
    std::memmove(to + 3, to, part);
    different = different * 2 + (std::memcmp(to, from, part) != 0);
    std::memset(to, static_cast<int>(part), part / 2);
  }
  return different;
}
TEST(CodeCache, LibraryVectorCode) {
  ExpectSame(Pointer(CopyAndCompare), {Value(g_copy), Value(g_bytes), 3000}, FillNumbers);
}

__attribute__((noinline)) std::uint64_t Strings(char* to, const char* from) {
  std::strcpy(to, from);
  std::strcat(to, "tail");
  return std::strlen(to) + static_cast<std::uint64_t>(std::strchr(to, 'm') - to) +
         (std::strcmp(to, from) > 0 ? 1000 : 0) + std::strtoul("12345", nullptr, 10);
}
TEST(CodeCache, Strings) {
  ExpectSame(Pointer(Strings), {Value(g_copy), Value("some text of no importance")}, FillNumbers);
}

__attribute__((noinline)) std::uint64_t Format(char* to, std::uint64_t size) {
  return static_cast<std::uint64_t>(
      std::snprintf(to, size, "%d %s %5.3f %#lx %c", -17, "text", 3.14159, 0xbeeful, 'x'));
}
TEST(CodeCache, Printf) {
  ExpectSame(Pointer(Format), {Value(g_copy), sizeof g_copy}, FillNumbers);
  EXPECT_STREQ(reinterpret_cast<const char*>(g_copy), "-17 text 3.142 0xbeef x");
}

// String instructions, both directions.
__attribute__((noinline)) std::uint64_t StringInstructions(std::uint8_t* to,
                                                           const std::uint8_t* from) {
  std::uint64_t result = 0;
  const void* si = from;
  void* di = to;
  std::uint64_t count = 37;
  asm volatile("rep movsb" : "+S"(si), "+D"(di), "+c"(count)::"memory");
  result += reinterpret_cast<std::uint64_t>(di) - reinterpret_cast<std::uint64_t>(to);
  count = 5;
  asm volatile("rep stosq" : "+D"(di), "+c"(count) : "a"(0x1122334455667788) : "memory");
  si = from + 200;
  di = to + 600;
  count = 20;
  asm volatile("std; rep movsl; cld" : "+S"(si), "+D"(di), "+c"(count)::"memory", "cc");
  si = from;
  di = to;
  count = 100;
  bool equal = false;
  asm volatile("repe cmpsb; sete %0"
               : "=r"(equal), "+S"(si), "+D"(di), "+c"(count)::"memory", "cc");
  result = result * 1000 + count + equal;
  di = to;
  count = 300;
  asm volatile("repne scasb; sete %0"
               : "=r"(equal), "+D"(di), "+c"(count)
               : "a"(0x88)
               : "memory", "cc");
  result = result * 1000 + count + equal;
  di = to;
  count = 0;
  asm volatile("stc; repe scasb; setc %0"
               : "=r"(equal), "+D"(di), "+c"(count)
               : "a"(1)
               : "memory", "cc");
  result = result * 10 + equal;
  si = from;
  di = to + 1000;
  std::uint64_t last = 0;
  asm volatile("lodsq; movsb; stosw; cmpsl" : "+S"(si), "+D"(di), "=a"(last)::"memory", "cc");
  return result + last;
}
TEST(CodeCache, StringInstructions) {
  ExpectSame(Pointer(StringInstructions), {Value(g_copy), Value(g_bytes)}, FillNumbers);
}

// Stack instructions of every kind, indirect calls through memory, loop, jrcxz, high byte
// registers, xlat, bit strings.
std::uint64_t AddOne(std::uint64_t value) { return value + 1; }
std::uint64_t (*g_function)(std::uint64_t) = AddOne;
__attribute__((noinline)) std::uint64_t Oddities(std::uint64_t* memory) {
  std::uint64_t result = 0;
  asm volatile(R"(
    mov $5, %%ecx
    xor %%eax, %%eax
  1: add $3, %%rax
    loop 1b
    jrcxz 2f
    ud2
  2: push %%rax
    push $0x12345
    push $-3
    pushq g_pointer_value_for_asm(%%rip)
    push %%rsp
    pop %%rdx
    sub %%rsp, %%rdx
    popq 8(%[m])
    popq (%[m])
    pop %%rbx
    add (%[m]), %%rbx
    pushq 8(%[m])
    popq (%%rsp)
    pushfq
    pop %%rcx
    push %%rcx
    popfq
    and $0x8d5, %%ecx
    pop %%rax
    add %%rcx, %%rax
    add %%rdx, %%rax
    add %%rbx, %%rax
    lea -16(%%rsp), %%rsp
    mov %%rax, (%%rsp)
    pop %%rax
    lea 8(%%rsp), %%rsp
  )"
               : "=&a"(result)
               : [m] "r"(memory)
               : "rbx", "rcx", "rdx", "memory", "cc");
  std::uint64_t value = result;
  asm volatile(
      "movb %%ah, g_byte_for_asm(%%rip); addb g_byte_for_asm(%%rip), %%ch; xchgb %%ch, "
      "g_byte_for_asm(%%rip)"
      : "+a"(value)::"rcx", "memory", "cc");
  asm volatile("bts %1, %0; btc %2, %0"
               : "+m"(*memory)
               : "r"(std::int64_t{133}), "r"(std::int64_t{-70})
               : "memory", "cc");
  asm volatile("mov $5, %%al; xlatb" : "+a"(value) : "b"(memory));
  asm volatile("lock addq $7, %0; lock xaddq %1, %0; lock cmpxchgq %1, %0"
               : "+m"(*memory), "+r"(value)::"rax", "memory", "cc");
  asm volatile(
      "stc; mov %%rsp, %%rbx; push %%rbp; mov %%rsp, %%rbp; lea -64(%%rsp), %%rsp; leave; adc $0, "
      "%0"
      : "+r"(value)::"rbx", "memory", "cc");
  return result + value + g_function(result) + memory[0] + memory[2];
}
}  // namespace
}  // namespace trapline
extern "C" {
std::uint64_t g_pointer_value_for_asm = 0x77;
std::uint8_t g_byte_for_asm;
}
namespace trapline {
namespace {
std::uint64_t g_memory[64];
TEST(CodeCache, Oddities) {
  ExpectSame(Pointer(Oddities), {Value(g_memory + 32)}, [] {
    for (unsigned i = 0; i < 64; ++i) g_memory[i] = 0x0101010101010101ull * i;
    g_byte_for_asm = 3;
  });
}

thread_local std::uint64_t t_counter;
__attribute__((noinline)) std::uint64_t ThreadLocal(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) t_counter += i ^ t_counter << 1;
  return t_counter;
}
TEST(CodeCache, ThreadLocal) {
  ExpectSame(Pointer(ThreadLocal), {20}, [] { t_counter = 1; });
}

__attribute__((noinline, target("avx2"))) std::uint64_t Avx2(std::uint32_t* numbers,
                                                             std::uint64_t count) {
  float sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    numbers[i] = (numbers[i] >> 3) * 17 + static_cast<std::uint32_t>(i);
    sum += static_cast<float>(numbers[i] & 0xff) * 0.5f;
  }
  const std::uint32_t indices[8] = {3, 1, 4, 1, 5, 9, 2, 6};
  std::uint32_t gathered[8] = {};
  asm volatile(R"(
    vmovdqu (%0), %%ymm1
    vpcmpeqd %%ymm2, %%ymm2, %%ymm2
    vpsrldq $12, %%ymm2, %%ymm2
    vpslld $31, %%ymm2, %%ymm2
    vmovdqa %%ymm2, %%ymm3
    vpxor %%ymm0, %%ymm0, %%ymm0
    vpgatherdd %%ymm2, (%1,%%ymm1,4), %%ymm0
    vpmaskmovd %%ymm0, %%ymm3, (%2)
    vmaskmovps (%1), %%ymm3, %%ymm4
    vextracti128 $1, %%ymm0, 16(%2)
    vzeroupper
  )" ::"r"(indices),
               "r"(numbers), "r"(gathered)
               : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "memory");
  return static_cast<std::uint64_t>(sum) + gathered[0] + gathered[4];
}
TEST(CodeCache, Avx2) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no AVX2";
  ExpectSame(Pointer(Avx2), {Value(g_numbers), kCount}, FillNumbers);
}

__attribute__((noinline)) std::uint64_t Avx512(std::uint32_t* numbers, std::uint64_t mask) {
  asm volatile(R"(
    vzeroall
    vpxord %%zmm21, %%zmm21, %%zmm21
    kmovq %1, %%k1
    vmovdqu32 (%0), %%zmm0%{%%k1%}
    vpaddd 64(%0), %%zmm0, %%zmm1%{%%k1%}
    vmovdqu8 %%zmm1, 3(%0)%{%%k1%}
    vpcompressd %%zmm1, 200(%0)%{%%k1%}
    vpexpandd 100(%0), %%zmm2%{%%k1%}
    vaddps (%0)%{1to16%}, %%zmm2, %%zmm3%{%%k1%}
    vbroadcasti32x4 64(%0), %%zmm4%{%%k1%}
    vpmovdb %%zmm3, 400(%0)%{%%k1%}
    vpternlogd $255, %%zmm5, %%zmm5, %%zmm5
    vpsrld $27, %%zmm5, %%zmm5
    vpscatterdd %%zmm1, (%0,%%zmm5,4)%{%%k1%}
    vmovss g_float_for_asm(%%rip), %%xmm20
    vmovdqu64 g_vector_for_asm(%%rip), %%zmm21%{%%k1%}
    vpaddq g_vector_for_asm(%%rip)%{1to8%}, %%zmm21, %%zmm22
    vmovdqu64 %%zmm22, g_vector_for_asm(%%rip)
    vzeroupper
  )" ::"r"(numbers),
               "r"(mask)
               : "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5");
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < kCount; ++i) sum = sum * 31 + numbers[i];
  return sum;
}
}  // namespace
}  // namespace trapline
extern "C" {
float g_float_for_asm = 2.5f;
std::uint64_t g_vector_for_asm[8];
}
namespace trapline {
namespace {
TEST(CodeCache, Avx512) {
  if (!__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "no AVX-512";
  for (const std::uint64_t mask : {0x0ull, 0xa5c3a5c3a5c35a3cull, ~0ull}) {
    ExpectSame(Pointer(Avx512), {Value(g_numbers), mask}, [] {
      FillNumbers();
      std::iota(g_vector_for_asm, g_vector_for_asm + 8, 1);
    });
  }
}

__attribute__((noinline)) double X87(double* memory) {
  long double value = memory[0];
  for (int i = 1; i < 20; ++i) value = value * 1.5L + memory[i % 4];
  std::int16_t control = 0;
  asm volatile("fnstcw %0; fldcw %0" : "+m"(control));
  memory[4] = static_cast<double>(value);
  return memory[4];
}
double g_doubles[8];
TEST(CodeCache, X87) {
  ExpectSame(Pointer(X87), {Value(g_doubles)}, [] {
    for (unsigned i = 0; i < 8; ++i) g_doubles[i] = 0.25 * i + 1;
  });
}

std::jmp_buf g_jump;
__attribute__((noinline)) void JumpBack(int value) { std::longjmp(g_jump, value); }
__attribute__((noinline)) std::uint64_t LongJump(std::uint64_t value) {
  const int back = setjmp(g_jump);
  if (back == 0) JumpBack(static_cast<int>(value));
  return static_cast<std::uint64_t>(back) * 3;
}
TEST(CodeCache, LongJump) {
  ExpectSame(Pointer(LongJump), {14}, [] { std::memset(&g_jump, 0, sizeof g_jump); });
}

// At every instruction of the cache the program's registers are those of one of its instruction
// boundaries; so are the flags, if they are `exact`.
void ExpectSameStates(const void* function, const Arguments& arguments,
                      const std::function<void()>& prepare, const TranslatorOptions& options,
                      bool exact) {
  prepare();
  RunNatively(function, arguments);  // the loader binds what it calls
  prepare();
  auto native = StatesNatively(function, arguments);
  auto cached = StatesInCache(function, arguments, prepare, options);
  if (!exact) {
    for (auto* const states : {&native, &cached}) {
      for (RegisterFile& state : *states) state.rflags = 0;
      const auto same = [](const RegisterFile& a, const RegisterFile& b) {
        return a.rip == b.rip && std::equal(a.gpr, a.gpr + 16, b.gpr);
      };
      states->erase(std::unique(states->begin(), states->end(), same), states->end());
    }
  }
  ASSERT_GT(native.size(), 20u);
  // After the last return: the stop.
  if (!cached.empty() && cached.size() == native.size() + 1) cached.pop_back();
  for (std::size_t i = 0; i < std::min(native.size(), cached.size()); ++i) {
    ASSERT_EQ(native[i].rip, cached[i].rip) << "state " << i;
    // Between the steps of a repeated comparison AMD's processors show the flags of the last step,
    // Intel's those from before the instruction.
    const bool repeats = i > 0 && native[i].rip == native[i - 1].rip;
    if (!repeats) {
      ASSERT_EQ(native[i].rflags, cached[i].rflags)
          << "state " << i << " at " << std::hex << native[i].rip;
    }
    for (unsigned reg = 0; reg < 16; ++reg) {
      ASSERT_EQ(native[i].gpr[reg], cached[i].gpr[reg])
          << "state " << i << " register " << reg << " at " << std::hex << native[i].rip;
    }
  }
  EXPECT_EQ(native.size(), cached.size());
}

// Zeros where absolute 32-bit operands reach them.
class LowBytes {
 public:
  explicit LowBytes(std::size_t size)
      : size_(size),
        memory_(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT | MAP_NORESERVE, -1, 0)) {}
  LowBytes(const LowBytes&) = delete;
  LowBytes& operator=(const LowBytes&) = delete;
  ~LowBytes() {
    if (bytes() != nullptr) munmap(memory_, size_);
  }
  // Null: there is no room.
  std::uint8_t* bytes() const {
    return memory_ != MAP_FAILED ? static_cast<std::uint8_t*>(memory_) : nullptr;
  }

 private:
  const std::size_t size_;
  void* const memory_;
};

// With every access checked, with the filter, with what settled sectors leave out, and with some
// instructions as they were; calls with frames and without.
void ExpectSameStates(const void* function, const Arguments& arguments,
                      const std::function<void()>& prepare) {
  constexpr std::size_t kUses = 1u << 23, kAreas = 1u << 20, kStates = 4096;
  const LowBytes memory(kUses + kStates + kAreas);
  std::uint8_t* const uses = memory.bytes();
  ASSERT_NE(uses, nullptr);
  uses[kUses] = 1;
  std::memset(uses + kUses + kStates, 1, kAreas);
  for (const bool frames : {false, true}) {
    TranslatorOptions options;
    options.shadow_stack = frames;
    ExpectSameStates(function, arguments, prepare, options, true);
    options.filter = true;
    ExpectSameStates(function, arguments, prepare, options, false);
    options.leaving_out = {Value(uses), Value(uses) + kUses, 9, 0};
    ExpectSameStates(function, arguments, prepare, options, false);
    options.handler = [](const AccessSite* site, std::uint64_t, const RegisterFile*) {
      site->leaves_out = 1;
    };
    ExpectSameStates(function, arguments, prepare, options, false);
    options.leaving_out->area_uses = Value(uses) + kUses + kStates;
    options.leaving_out->area_bits = 12;
    ExpectSameStates(function, arguments, prepare, options, false);
    for (const unsigned one_in : {2, 3, 5}) {
      options.instrument = [one_in](std::uint64_t rip) {
        return rip % one_in == 0 ? Instrument::kNone : Instrument::kCheck;
      };
      ExpectSameStates(function, arguments, prepare, options, false);
    }
  }
}
TEST(Recover, Loop) { ExpectSameStates(Pointer(SumNumbers), {Value(g_numbers), 20}, FillNumbers); }
TEST(Recover, LoopsInALoop) {
  ExpectSameStates(Pointer(LoopsInALoop), {Value(g_numbers), 20}, FillNumbers);
}
TEST(Recover, Recursion) {
  ExpectSameStates(Pointer(Fibonacci), {6}, [] {});
}
TEST(Recover, Sort) { ExpectSameStates(Pointer(Sort), {Value(g_numbers), 12}, FillNumbers); }
TEST(Recover, SwitchTable) { ExpectSameStates(Pointer(Switch), {Value(g_bytes), 60}, FillNumbers); }
TEST(Recover, StringInstructions) {
  ExpectSameStates(Pointer(StringInstructions), {Value(g_copy), Value(g_bytes)}, FillNumbers);
}
TEST(Recover, ThreadLocal) {
  ExpectSameStates(Pointer(ThreadLocal), {5}, [] { t_counter = 1; });
}
TEST(Recover, Oddities) {
  ExpectSameStates(Pointer(Oddities), {Value(g_memory + 32)}, [] {
    for (unsigned i = 0; i < 64; ++i) g_memory[i] = 0x0101010101010101ull * i;
    g_byte_for_asm = 3;
  });
}

// A cache of a few regions that is full again and again.
TEST(CodeCache, SmallCache) {
  TranslatorOptions options = RecordingOptions();
  options.max_instructions = 16;
  options.code_size = 14u << 10;
  FillNumbers();
  RunNatively(Pointer(Sort), {Value(g_numbers), 100});
  const TracedRun run = RunInCache(Pointer(Sort), {Value(g_numbers), 100}, options);
  EXPECT_EQ(run.failure, "");
  FillNumbers();
  const TracedRun again = RunInCache(Pointer(Sort), {Value(g_numbers), 100}, options);
  EXPECT_EQ(again.failure, "");
  EXPECT_TRUE(std::is_sorted(g_numbers, g_numbers + 100));
  CodeCache cache(options);
  FillNumbers();
  constexpr std::uint64_t kStop = 0x7ffffff0000;
  RegisterFile registers = RegistersFor(Pointer(Sort), {Value(g_numbers), 100}, kStop);
  EXPECT_EQ(cache.Run(registers, kStop), CodeCache::RunResult::kStopped);
  EXPECT_GT(cache.statistics().flushes, 1u);
  EXPECT_TRUE(std::is_sorted(g_numbers, g_numbers + 100));
}

// How often the handler is called while the function runs in a new cache.
unsigned g_handled;
unsigned HandledIn(const TranslatorOptions& options, const void* function,
                   const Arguments& arguments) {
  g_handled = 0;
  CodeCache cache(options);
  constexpr std::uint64_t kStop = 0x7ffffff0000;
  RegisterFile registers = RegistersFor(function, arguments, kStop);
  EXPECT_EQ(cache.Run(registers, kStop), CodeCache::RunResult::kStopped);
  return g_handled;
}

// Stores of pointers that the code names: a word, two of them, one that is kept over a call and one
// that was made before the code begins.
extern "C" void StoreTables(std::uint64_t* object);
extern "C" void StoreGiven(std::uint64_t* object, std::uint64_t pointer);
extern "C" const std::uint64_t g_tables[8];
__asm__(R"(
    .section .rodata
    .balign 16
g_tables: .zero 64
    .text
    lea g_tables(%rip), %r8
StoreGiven:
    mov %rsi, (%rdi)
    ret
StoreTables:
    push %rbx
    lea 16+g_tables(%rip), %rbx
    lea 16(%rbx), %rdx
    call 1f
    mov %rbx, (%rdi)
    movq %rbx, %xmm3
    movq %rdx, %xmm11
    punpcklqdq %xmm11, %xmm3
    movups %xmm3, 8(%rdi)
    movq $1, 24(%rdi)
    pop %rbx
1:  ret
)");
TEST(CodeCache, StoresOfTablePointers) {
  const std::uint64_t tables = Value(g_tables);
  std::uint64_t object[4];
  TranslatorOptions options;
  options.table_pointers = {[](std::uint64_t, std::uint64_t&) { return false; },
                            [&](std::uint64_t word) { return word - tables < sizeof g_tables; }};
  // 'w' for each access to the object that writes it, 'r' for each that does not.
  const auto accesses = [&](const void* function, const Arguments& arguments) {
    const TracedRun run = RunInCache(function, arguments, options);
    EXPECT_EQ(run.failure, "");
    std::string kinds;
    for (const auto& [rip, access] : run.accesses) {
      if (access.address - Value(object) < sizeof object) kinds += access.write ? 'w' : 'r';
    }
    return kinds;
  };
  const auto store_all = [&] { return accesses(Pointer(StoreTables), {Value(object)}); };
  std::fill(std::begin(object), std::end(object), 0);
  EXPECT_EQ(store_all(), "www");
  EXPECT_EQ(object[0], tables + 16);
  EXPECT_EQ(object[1], tables + 16);
  EXPECT_EQ(object[2], tables + 32);
  EXPECT_EQ(object[3], 1u);
  EXPECT_EQ(store_all(), "rrw");
  object[2] = 0;
  EXPECT_EQ(store_all(), "rww");
  object[1] = tables + 24;
  EXPECT_EQ(store_all(), "rww");
  object[0] = tables + 8;
  EXPECT_EQ(store_all(), "wrw");

  const auto store = [&](std::uint64_t pointer) {
    return accesses(Pointer(StoreGiven), {Value(object), pointer});
  };
  EXPECT_EQ(store(tables), "w");
  EXPECT_EQ(store(tables), "r");
  EXPECT_EQ(store(12), "w");
  EXPECT_EQ(store(12), "w");
  options.table_pointers = {};
  EXPECT_EQ(store(tables), "w");
  EXPECT_EQ(store(tables), "w");
}

// Hot code does not tell of settled sectors, and of an access to two only if both are.
TEST(CodeCache, LeavingOut) {
  constexpr std::size_t kUses = 1u << 23;
  const LowBytes memory(kUses + 2);
  std::uint8_t* const uses = memory.bytes();
  ASSERT_NE(uses, nullptr);
  uses[kUses + 1] = 1;
  TranslatorOptions options = RecordingOptions();
  options.filter = true;
  options.handler = [](const AccessSite* site, std::uint64_t, const RegisterFile*) {
    ++g_handled;
    if (site->size != 8) site->leaves_out = 1;  // but for the return address
  };
  options.leaving_out = {Value(uses), Value(uses) + kUses, 9, 0};
  alignas(512) static std::uint8_t bytes[2048];
  const auto use_of = [&](const std::uint8_t* byte) -> std::uint8_t& {
    return uses[static_cast<std::uint32_t>(Value(byte)) >> 9];
  };
  const auto count = [&](const void* function, const std::uint8_t* from, std::uint64_t times) {
    return HandledIn(options, function, {Value(from), times}) - 1;  // the return address
  };
  EXPECT_EQ(count(Pointer(SumNumbers), bytes, 256), 256u);
  use_of(bytes) = 1;
  EXPECT_EQ(count(Pointer(SumNumbers), bytes, 256), 1u + 128);
  use_of(bytes + 512) = 1;
  EXPECT_EQ(count(Pointer(SumNumbers), bytes, 256), 1u);
  EXPECT_EQ(count(Pointer(LoadSixteen), bytes + 1024 - 24, 2), 2u);
  use_of(bytes + 1024) = 1;
  EXPECT_EQ(count(Pointer(LoadSixteen), bytes + 1024 - 24, 2), 1u);
}

// Of accesses that lie together the area is asked first, and the sectors only where that has to be
// told of.
TEST(CodeCache, LeavingOutByAreas) {
  constexpr std::size_t kUses = 1u << 23, kAreas = 1u << 20;
  const LowBytes memory(kUses + 2 + kAreas);
  std::uint8_t* const uses = memory.bytes();
  ASSERT_NE(uses, nullptr);
  uses[kUses + 1] = 1;
  TranslatorOptions options = RecordingOptions();
  options.filter = true;
  options.handler = [](const AccessSite* site, std::uint64_t, const RegisterFile*) {
    ++g_handled;
    site->leaves_out = 1;
  };
  options.leaving_out = {Value(uses), Value(uses) + kUses, 9, 0, Value(uses) + kUses + 2, 12};
  const auto count = [&] { return HandledIn(options, Pointer(Fibonacci), {12}); };
  const unsigned all = count();
  std::memset(uses, 1, kUses);
  const unsigned by_sectors = count();
  std::memset(uses + kUses + 2, 1, kAreas);
  EXPECT_EQ(count(), by_sectors);
  EXPECT_LT(by_sectors * 4, all);
  // Never less strict: so nobody asks for the sectors then.
  std::memset(uses, 0, kUses);
  EXPECT_LT(count(), all);
}

// Full by the number of its blocks.
TEST(CodeCache, FewBlocks) {
  TranslatorOptions options = RecordingOptions();
  options.max_instructions = 16;
  options.max_blocks = 32;
  CodeCache cache(options);
  constexpr std::uint64_t kStop = 0x7ffffff0000;
  FillNumbers();
  RegisterFile registers = RegistersFor(Pointer(Sort), {Value(g_numbers), 100}, kStop);
  EXPECT_EQ(cache.Run(registers, kStop), CodeCache::RunResult::kStopped);
  EXPECT_TRUE(std::is_sorted(g_numbers, g_numbers + 100));
  const CacheStatistics& statistics = cache.statistics();
  EXPECT_GT(statistics.flushes, 1u);
  EXPECT_GE(statistics.blocks, statistics.regions);
  EXPECT_LE(statistics.blocks, statistics.instructions);
  // Each time it was full only then, and at once.
  EXPECT_GE(statistics.blocks, statistics.flushes * options.max_blocks);
  EXPECT_LT(statistics.blocks,
            (statistics.flushes + 1) * (options.max_blocks + options.max_instructions));
}

// Lookups for which the table has no room fill the cache, too: each costs an exit.
TEST(CodeCache, CrowdedTable) {
  constexpr std::uint64_t kStride = 65536;  // addresses that share a pair
  constexpr unsigned kCopies = 12;          // more than are looked at
  auto* const code = static_cast<std::uint8_t*>(
      mmap(nullptr, kStride * kCopies, PROT_READ | PROT_WRITE | PROT_EXEC,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(code, MAP_FAILED);
  for (unsigned i = 0; i < kCopies; ++i) code[i * kStride] = 0xc3;
  TranslatorOptions options = RecordingOptions();
  CodeCache cache(options);
  for (unsigned round = 0; round < 1000 && !cache.full(); ++round) {
    for (unsigned i = 0; i < kCopies; ++i)
      ASSERT_NE(cache.FollowLookup(Value(code + i * kStride)), 0u);
  }
  EXPECT_FALSE(cache.full()) << "some thousand are no reason";
  for (unsigned round = 0; round < 1000; ++round) {
    for (unsigned i = 0; i < kCopies; ++i)
      ASSERT_NE(cache.FollowLookup(Value(code + i * kStride)), 0u);
  }
  EXPECT_TRUE(cache.full());
  munmap(code, kStride * kCopies);
}

// Code that is invalidated again and again needs no more room in the table for it.
TEST(CodeCache, VacatedPairs) {
  constexpr std::uint64_t kStride = 65536;  // addresses that share a pair
  constexpr unsigned kCopies = 8;           // as many as there is room for
  auto* const code = static_cast<std::uint8_t*>(
      mmap(nullptr, kStride * kCopies, PROT_READ | PROT_WRITE | PROT_EXEC,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(code, MAP_FAILED);
  // mov $I, %eax; ret, and a caller: call *%rdi; ret
  for (unsigned i = 0; i < kCopies; ++i) {
    const std::uint8_t copy[] = {0xb8, static_cast<std::uint8_t>(i), 0, 0, 0, 0xc3};
    std::memcpy(code + i * kStride, copy, sizeof copy);
  }
  const std::uint8_t caller[] = {0xff, 0xd7, 0xc3};
  std::memcpy(code + 64, caller, sizeof caller);
  CodeCache cache(RecordingOptions());
  constexpr std::uint64_t kStop = 0x7ffffff0000;
  const auto call = [&](unsigned i) {
    RegisterFile registers = RegistersFor(code + 64, {Value(code + i * kStride)}, kStop);
    EXPECT_EQ(cache.Run(registers, kStop), CodeCache::RunResult::kStopped);
    return registers.gpr[kRax];
  };
  for (unsigned i = 0; i < kCopies; ++i) ASSERT_EQ(call(i), i);
  for (unsigned round = 0; round < 100; ++round) {
    const unsigned i = round % kCopies;
    cache.Invalidate(Value(code + i * kStride), Value(code + i * kStride) + 1);
    ASSERT_EQ(call(i), i);
    const std::uint64_t exits = cache.statistics().exits;
    ASSERT_EQ(call(i), i);
    ASSERT_EQ(cache.statistics().exits, exits + 1) << "it is found in the table";
  }
  munmap(code, kStride * kCopies);
}

// What is checked often becomes hot, once, with what is covered by its check; and what was checked
// before need not begin anew.
TEST(CodeCache, TakeHot) {
  constexpr std::size_t kUses = 1u << 23;
  constexpr std::int16_t kChecks = 7;
  const LowBytes memory(kUses + 2);
  ASSERT_NE(memory.bytes(), nullptr);
  // mov (%rdi), %rax; add %rax, 8(%rdi); mov 8(%rdi), %rax; mov (%rdi), %rcx; ret
  static const std::uint8_t kCode[] = {0x48, 0x8b, 0x07, 0x48, 0x01, 0x47, 0x08, 0x48,
                                       0x8b, 0x47, 0x08, 0x48, 0x8b, 0x0f, 0xc3};
  static std::int16_t coldest;
  TranslatorOptions options = RecordingOptions();
  options.filter = true;
  options.leaving_out = {Value(memory.bytes()), Value(memory.bytes()) + kUses, 9, kChecks};
  options.handler = [](const AccessSite* site, std::uint64_t, const RegisterFile*) {
    if (site->rip == Value(kCode)) return;
    coldest = std::max(coldest, site->cold);
    if (site->cold > 0) --site->cold;
  };
  std::uint64_t numbers[2] = {1, 2};
  constexpr std::uint64_t kStop = 0x7ffffff0000;
  CodeCache cache(options);
  const auto run = [&](CodeCache& in) {
    RegisterFile registers = RegistersFor(kCode, {Value(numbers)}, kStop);
    EXPECT_EQ(in.Run(registers, kStop), CodeCache::RunResult::kStopped);
  };
  const auto hot = [&] {
    std::set<std::uint64_t> found;
    cache.TakeHot([&](std::uint64_t rip) { EXPECT_TRUE(found.insert(rip - Value(kCode)).second); });
    return found;
  };
  for (std::int16_t i = 1; i < kChecks; ++i) run(cache);
  EXPECT_EQ(hot(), (std::set<std::uint64_t>{}));
  run(cache);
  EXPECT_EQ(hot(), (std::set<std::uint64_t>{3, 7, 14})) << "not what reads (%rdi)";
  run(cache);
  EXPECT_EQ(hot(), (std::set<std::uint64_t>{}));
  cache.RemoveAll();
  cache.Flush();
  for (std::int16_t i = 0; i < kChecks; ++i) run(cache);
  EXPECT_EQ(hot(), (std::set<std::uint64_t>{3, 7, 14})) << "translated anew";

  EXPECT_EQ(coldest, kChecks);
  coldest = 0;
  EXPECT_EQ(cache.ColdChecks(Value(kCode)), kChecks);
  EXPECT_EQ(cache.ColdChecks(Value(kCode) + 3), std::nullopt);
  options.cold_checks = [&](std::uint64_t rip) {
    return static_cast<std::int16_t>(cache.ColdChecks(rip).value_or(1));
  };
  CodeCache other(options);
  run(other);
  EXPECT_EQ(coldest, 1);
}

// An instruction that is to be reported, and would exit otherwise.
TEST(CodeCache, ReportAt) {
  // lea 1(%rdi), %rax; cmp %rdi, %rdi; out %al, $0x80; sete %cl; movzx %cl, %ecx; add %rcx, %rax;
  // ret
  static const std::uint8_t kCode[] = {0x48, 0x8d, 0x47, 0x01, 0x48, 0x39, 0xff, 0xe6, 0x80, 0x0f,
                                       0x94, 0xc1, 0x0f, 0xb6, 0xc9, 0x48, 0x01, 0xc8, 0xc3};
  static std::vector<RegisterFile> reports;
  reports.clear();
  TranslatorOptions options;
  options.report_at = Value(kCode + 7);
  options.read_code = [](std::uint64_t address, std::uint8_t* to, std::size_t size) {
    std::memcpy(to, reinterpret_cast<const void*>(address), size);
    return size;
  };
  options.handler = [](const AccessSite* site, std::uint64_t, const RegisterFile* registers) {
    if (!site->report) return;
    EXPECT_EQ(site->rip, registers->rip);
    reports.push_back(*registers);
  };
  CodeCache cache(options);
  constexpr std::uint64_t kStop = 0x7ffffff0000;
  RegisterFile registers = RegistersFor(kCode, {41}, kStop);
  EXPECT_EQ(cache.Run(registers, kStop), CodeCache::RunResult::kStopped);
  EXPECT_EQ(registers.gpr[kRax], 43u) << "the flags are the program's";
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].rip, options.report_at);
  EXPECT_EQ(reports[0].gpr[kRax], 42u);
  EXPECT_EQ(reports[0].gpr[kRdi], 41u);
}

// Code that is written anew.
TEST(CodeCache, Invalidation) {
  auto* code = static_cast<std::uint8_t*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(code, MAP_FAILED);
  // call 1f; add $1, %eax; ret; at 64: mov $5, %eax; ret
  const std::uint8_t caller[] = {0xe8, 0x3b, 0, 0, 0, 0x83, 0xc0, 0x01, 0xc3};
  const std::uint8_t callee[] = {0xb8, 5, 0, 0, 0, 0xc3};
  std::memcpy(code, caller, sizeof caller);
  std::memcpy(code + 64, callee, sizeof callee);
  CodeCache cache(RecordingOptions());
  constexpr std::uint64_t kStop = 0x7ffffff0000;
  const auto run = [&] {
    RegisterFile registers = RegistersFor(code, {}, kStop);
    EXPECT_EQ(cache.Run(registers, kStop), CodeCache::RunResult::kStopped);
    return registers.gpr[kRax];
  };
  EXPECT_EQ(run(), 6u);
  EXPECT_EQ(run(), 6u);
  const std::uint64_t exits = cache.statistics().exits;
  EXPECT_EQ(run(), 6u);
  EXPECT_EQ(cache.statistics().exits, exits + 1) << "everything is linked";
  code[65] = 7;
  EXPECT_EQ(run(), 6u) << "not yet told";
  cache.Invalidate(Value(code + 66), Value(code + 67));  // any byte of the instruction
  EXPECT_EQ(cache.Find(Value(code + 64)), 0u);
  EXPECT_NE(cache.Find(Value(code)), 0u);
  EXPECT_EQ(run(), 8u);
  EXPECT_EQ(run(), 8u);
  code[7] = 2;
  cache.Invalidate(Value(code), Value(code + 4096));
  EXPECT_EQ(run(), 9u);
  cache.RemoveAll();
  EXPECT_EQ(cache.Find(Value(code)), 0u);
  EXPECT_EQ(run(), 9u);
  EXPECT_EQ(run(), 9u);
  munmap(code, 4096);
}

// A loop's code is removed while the loop runs: what it keeps in its slot is in its place again.
CodeCache* g_removed_cache = nullptr;
unsigned g_removed_after = 0;
void ExpectSameWhileRemoved(const void* function) {
  for (unsigned interval = 1; interval < 60; interval += 3) {
    TranslatorOptions options = RecordingOptions();
    options.handler = [](const AccessSite* site, std::uint64_t, const RegisterFile*) {
      if (++g_removed_after % 64 != 0) return;
      if (g_removed_after % 128 == 0) {
        g_removed_cache->RemoveAll();
      } else {
        g_removed_cache->Invalidate(site->rip, site->rip + 1);
      }
    };
    CodeCache cache(options);
    g_removed_cache = &cache;
    g_removed_after = interval;
    FillNumbers();
    const std::uint64_t result = RunNatively(function, {Value(g_numbers), 100});
    const std::vector<std::uint32_t> numbers(g_numbers, g_numbers + 100);
    FillNumbers();
    constexpr std::uint64_t kStop = 0x7ffffff0000;
    RegisterFile registers = RegistersFor(function, {Value(g_numbers), 100}, kStop);
    ASSERT_EQ(cache.Run(registers, kStop), CodeCache::RunResult::kStopped);
    EXPECT_TRUE(std::equal(numbers.begin(), numbers.end(), g_numbers));
    EXPECT_EQ(registers.gpr[kRax], result);
    EXPECT_GT(g_removed_after, 1000u);
  }
}
TEST(CodeCache, InvalidationInsideALoop) { ExpectSameWhileRemoved(Pointer(Sort)); }
TEST(CodeCache, InvalidationInsideLoopsInALoop) { ExpectSameWhileRemoved(Pointer(LoopsInALoop)); }

// As in a guest: memory of others, and exits by a port instruction, which here is a general
// protection fault.
CodeCache* g_guest_cache = nullptr;
CacheThread* g_guest_thread = nullptr;
unsigned g_guest_exits = 0;
unsigned g_guest_accesses = 0;
std::uint64_t g_guest_done = 0;
void OnGuestExit(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* at = reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]);
  if (at[0] != 0xe6 || at[1] != 0x85) std::abort();
  ++g_guest_exits;
  std::uint64_t next = 0;
  if (static_cast<ExitKind>(g_guest_thread->exit_kind) == ExitKind::kLink) {
    next = g_guest_cache->FollowLink(g_guest_thread->exit_argument);
  } else if (static_cast<ExitKind>(g_guest_thread->exit_kind) == ExitKind::kLookup) {
    // Where nothing is instrumented the program goes on natively.
    const std::uint64_t target = g_guest_thread->target;
    const bool ours = target >= g_guest_done && target < g_guest_done + 4096;
    next = ours ? g_guest_cache->FollowLookup(target) : target;
  }
  if (next == 0) std::abort();
  registers[REG_RIP] = static_cast<std::int64_t>(next);
}
TEST(CodeCache, GuestExits) {
  const auto map = [](std::size_t size, int protection) {
    void* const memory =
        mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    return Value(memory);
  };
  TranslatorOptions options = RecordingOptions();
  options.code_size = 1u << 20;
  options.max_instructions = 64;
  options.exit_port = 0x85;
  options.handler = [](const AccessSite*, std::uint64_t, const RegisterFile*) {
    ++g_guest_accesses;
  };
  CacheMemory memory;
  memory.code = map(options.code_size, PROT_READ | PROT_WRITE | PROT_EXEC);
  memory.table = map(CacheMemory::kTableSize, PROT_READ | PROT_WRITE);
  memory.sites = map(CacheMemory::kSitesSize, PROT_READ | PROT_WRITE);
  memory.thread = map(sizeof(CacheThread), PROT_READ | PROT_WRITE);
  options.memory = memory;
  CodeCache cache(options);
  // A function that calls another, on a page of its own.
  auto* code = static_cast<std::uint8_t*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const std::uint8_t caller[] = {0x31, 0xc0, 0xb9, 3,    0,    0,    0,    0xe8, 0x34,
                                 0,    0,    0,    0xff, 0xc9, 0x75, 0xf7, 0xc3};
  const std::uint8_t callee[] = {0x03, 0x07, 0x83,
                                 0x07, 0x02, 0xc3};  // add (%rdi), %eax; addl $2, (%rdi); ret
  std::memcpy(code, caller, sizeof caller);
  std::memcpy(code + 64, callee, sizeof callee);
  g_guest_cache = &cache;
  g_guest_thread = reinterpret_cast<CacheThread*>(memory.thread);
  g_guest_done = Value(code);
  g_guest_exits = 0;
  g_guest_accesses = 0;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_sigaction = OnGuestExit;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &before);
  std::uint32_t number = 5;
  const std::uint64_t entry = cache.Translate(Value(code));
  EXPECT_EQ(RunNatively(reinterpret_cast<const void*>(entry), {Value(&number)}), 5u + 7 + 9);
  const unsigned first = g_guest_exits;
  EXPECT_EQ(RunNatively(reinterpret_cast<const void*>(entry), {Value(&number)}), 11u + 13 + 15);
  sigaction(SIGSEGV, &before, nullptr);
  EXPECT_EQ(first, 3u) << "the call, the return into the caller, the return out of it";
  EXPECT_EQ(g_guest_exits, first + 1) << "only the return out of the cache";
  EXPECT_EQ(g_guest_accesses, 2u * (3 * 4 + 1));
  munmap(code, 4096);
  munmap(reinterpret_cast<void*>(memory.code), options.code_size);
  munmap(reinterpret_cast<void*>(memory.table), CacheMemory::kTableSize);
  munmap(reinterpret_cast<void*>(memory.sites), CacheMemory::kSitesSize);
  munmap(reinterpret_cast<void*>(memory.thread), sizeof(CacheThread));
}

// With a mirror: all that the program touches lies open only at its mirror address.
constexpr std::uint64_t kMirrorOffset = 0xffffe00000000000;
constexpr std::size_t kMirroredSize = 1u << 20;
void OnMirrorFault(int, siginfo_t* info, void*) {
  // Pages of other memory are copied when they are first touched.
  const std::uint64_t page = Value(info->si_addr) & ~4095ull;
  void* const mirror = mmap(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (mirror == MAP_FAILED || Value(mirror) != page) std::abort();  // not a missing mirror page
  std::memcpy(mirror, reinterpret_cast<const void*>(page - kMirrorOffset), 4096);
}
void ExpectSameInMirror(const void* function,
                        const std::function<Arguments(std::uint8_t*)>& arguments) {
  constexpr unsigned long kFsgsbase = 2;
  if ((getauxval(AT_HWCAP2) & kFsgsbase) == 0)
    GTEST_SKIP() << "the kernel does not let programs set GS base";
  const int file = memfd_create("mirrored", 0);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, kMirroredSize), 0);
  void* const own = mmap(nullptr, kMirroredSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(own, MAP_FAILED);
  void* const mirror = mmap(reinterpret_cast<void*>(Value(own) + kMirrorOffset), kMirroredSize,
                            PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
  ASSERT_EQ(Value(mirror), Value(own) + kMirrorOffset);
  auto* const bytes = static_cast<std::uint8_t*>(own);
  const auto fill = [&] {
    for (std::size_t i = 0; i < kMirroredSize; ++i)
      bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  };
  fill();
  const std::uint64_t native = RunNatively(function, arguments(bytes));
  const std::vector<std::uint8_t> after(bytes, bytes + 65536);
  fill();

  TranslatorOptions options = RecordingOptions();
  options.mirror_offset = kMirrorOffset;
  CodeCache cache(options);
  constexpr std::uint64_t kStop = 0x7ffffff0000;
  RegisterFile registers = RegistersFor(function, arguments(bytes), kStop);
  // The stack too.
  registers.gpr[kRsp] = Value(bytes) + kMirroredSize - 4096 - 8;
  std::memcpy(reinterpret_cast<void*>(registers.gpr[kRsp]), &kStop, sizeof kStop);
  struct sigaction action {};
  struct sigaction before {};
  action.sa_sigaction = OnMirrorFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  static unsigned char signal_stack[65536];
  stack_t alternate{};
  alternate.ss_sp = signal_stack;
  alternate.ss_size = sizeof signal_stack;
  sigaltstack(&alternate, nullptr);
  sigaction(SIGSEGV, &action, &before);
  mprotect(own, kMirroredSize, PROT_NONE);
  asm volatile("wrgsbase %0" ::"r"(kMirrorOffset));
  const auto result = cache.Run(registers, kStop);
  asm volatile("wrgsbase %0" ::"r"(std::uint64_t{0}));
  mprotect(own, kMirroredSize, PROT_READ | PROT_WRITE);
  sigaction(SIGSEGV, &before, nullptr);
  EXPECT_EQ(result, CodeCache::RunResult::kStopped);
  EXPECT_EQ(registers.gpr[kRax], native);
  EXPECT_TRUE(std::equal(after.begin(), after.end(), bytes));
  munmap(own, kMirroredSize);
  munmap(mirror, kMirroredSize);
  close(file);
}
TEST(Mirror, Loop) {
  ExpectSameInMirror(Pointer(SumNumbers), [](std::uint8_t* at) {
    return Arguments{Value(at), 1000};
  });
}
TEST(Mirror, Recursion) {
  ExpectSameInMirror(Pointer(Fibonacci), [](std::uint8_t*) { return Arguments{12}; });
}
TEST(Mirror, Sort) {
  ExpectSameInMirror(Pointer(Sort), [](std::uint8_t* at) { return Arguments{Value(at), 200}; });
}
TEST(Mirror, StringInstructions) {
  ExpectSameInMirror(Pointer(StringInstructions), [](std::uint8_t* at) {
    return Arguments{Value(at), Value(at + 8192)};
  });
}
TEST(Mirror, LibraryVectorCode) {
  ExpectSameInMirror(Pointer(CopyAndCompare), [](std::uint8_t* at) {
    return Arguments{Value(at), Value(at + 8192), 3000};
  });
}
TEST(Mirror, Avx2) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no AVX2";
  ExpectSameInMirror(Pointer(Avx2), [](std::uint8_t* at) { return Arguments{Value(at), kCount}; });
}
TEST(Mirror, Oddities) {
  g_byte_for_asm = 3;
  ExpectSameInMirror(Pointer(Oddities), [](std::uint8_t* at) {
    g_byte_for_asm = 3;
    return Arguments{Value(at + 4096)};
  });
}

// Functions of subjects.cpp. Allocators and unwinders remember: results only.
class Subjects : public ::testing::TestWithParam<std::pair<const char*, std::uint64_t>> {};

TEST_P(Subjects, SameResult) {
  void* const library = dlmopen(LM_ID_NEWLM, TRANSLATOR_SUBJECTS, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto [name, argument] = GetParam();
  const void* const function = dlsym(library, name);
  ASSERT_NE(function, nullptr);
  const std::uint64_t native = RunNatively(function, {argument});
  const TracedRun cached = RunInCache(function, {argument});
  EXPECT_EQ(cached.failure, "");
  EXPECT_EQ(cached.result, native);
  EXPECT_GT(cached.accesses.size(), 1000u);
  dlclose(library);
}
INSTANTIATE_TEST_SUITE_P(CodeCache, Subjects,
                         ::testing::Values(std::pair{"SubjectExceptions", std::uint64_t{5}},
                                           std::pair{"SubjectContainers", std::uint64_t{300}},
                                           std::pair{"SubjectVirtualCalls", std::uint64_t{500}},
                                           std::pair{"SubjectPrintf", std::uint64_t{50}}));

}  // namespace
}  // namespace trapline
