// What running from the code cache costs: the same functions natively, copied only, with every
// access checked by the filter (all hits but the first), and with the calls' frames kept besides,
// as in a guest. Ratios of one run are what counts.
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "bench/translator/kernels.h"
#include "translator/code_cache.h"

namespace trapline {
namespace {

constexpr std::uint64_t kStop = 0x7ffffff0000;

__attribute__((noinline)) std::uint64_t Sum(const std::uint64_t* from, std::uint64_t count) {
  std::uint64_t sum = 0;

  for (std::uint64_t i = 0; i < count; ++i) {
    sum += from[i];
    asm volatile("" : "+r"(sum));
  }
  return sum;
}

__attribute__((noinline)) std::uint64_t Increment(std::uint64_t* at, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    at[i] += 1;
    asm volatile("" ::: "memory");
  }
  return at[0];
}

__attribute__((noinline)) std::uint64_t Stencil(std::uint64_t* at, std::uint64_t count) {
  for (std::uint64_t i = 1; i + 1 < count; ++i) {
    at[i] = (at[i - 1] + at[i] * 2 + at[i + 1]) >> 2;
    asm volatile("" ::: "memory");
  }
  return at[1];
}

__attribute__((noinline)) std::uint64_t Fibonacci(std::uint64_t n) {
  return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2);
}
std::uint64_t RunFibonacci(std::uint64_t*, std::uint64_t) { return Fibonacci(22); }

__attribute__((noinline)) std::uint64_t AddOne(std::uint64_t value) {
  asm volatile("" : "+r"(value));
  return value + 1;
}
__attribute__((noinline)) std::uint64_t Call(std::uint64_t count) {
  std::uint64_t value = 0;
  for (std::uint64_t i = 0; i < count; ++i) value = AddOne(value);
  return value;
}
__attribute__((noinline)) std::uint64_t CallIndirectly(std::uint64_t count) {
  std::uint64_t (*volatile function)(std::uint64_t) = AddOne;
  std::uint64_t value = 0;
  for (std::uint64_t i = 0; i < count; ++i) value = function(value);
  return value;
}

// One indirect jump a step, to two places in turn.
__attribute__((noinline)) std::uint64_t JumpIndirectly(std::uint64_t count) {
  std::uint64_t value = 0;
  asm volatile(
      "lea 2f(%%rip), %%r8; lea 3f(%%rip), %%r9\n"
      "1: xchg %%r8, %%r9; jmp *%%r8\n"
      "2: add $1, %0; dec %1; jnz 1b; jmp 4f\n"
      "3: add $3, %0; dec %1; jnz 1b\n"
      "4:"
      : "+b"(value), "+D"(count)
      :
      : "r8", "r9", "cc");
  return value;
}

CodeCache* g_cache = nullptr;
std::uint64_t g_slow = 0;

__attribute__((target("general-regs-only"))) void Fill(const AccessSite* site,
                                                       std::uint64_t address, const RegisterFile*) {
  ++g_slow;
  if (site->instruction != nullptr) return;
  CacheThread& thread = g_cache->thread();
  unsigned index = 7;
  for (unsigned i = 0; i < 7; ++i) {
    if (site->size == 1u << i) index = i;
  }
  thread.filter[site->write ? 1 : 0][CacheThread::FilterOffset(address, site->size) / 8] =
      thread.signature[index] + address;
}

// Processor time of the thread, so that other programs' time does not count.
double Now() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double Seconds(const std::function<void()>& run) {
  double best = 1e9;
  for (int i = 0; i < 9; ++i) {
    const double start = Now();
    run();
    best = std::min(best, Now() - start);
  }
  return best;
}

TranslatorOptions OwnCode() {
  TranslatorOptions options;
  options.read_code = [](std::uint64_t address, std::uint8_t* to, std::size_t size) {
    std::memcpy(to, reinterpret_cast<const void*>(address), size);
    return size;
  };
  return options;
}

using Function = std::uint64_t (*)(std::uint64_t*, std::uint64_t);

void Measure(const char* name, Function function, double accesses, std::uint64_t* memory,
             std::uint64_t count, unsigned char* stack_top) {
  enum Mode : unsigned { kCopied, kChecked, kFrames, kModes };
  double cached[kModes] = {};
  std::uint64_t slow = 0;
  for (unsigned mode = kCopied; mode < kModes; ++mode) {
    TranslatorOptions options = OwnCode();
    options.shadow_stack = mode == kFrames;
    options.handler = Fill;
    options.filter = true;
    if (mode == kCopied) options.instrument = [](std::uint64_t) { return Instrument::kNone; };
    CodeCache cache(options);
    g_cache = &cache;
    for (unsigned i = 0; i < 8; ++i)
      cache.thread().signature[i] = (8ull + i) << CacheThread::kSignatureShift;
    const auto run = [&] {
      RegisterFile registers;
      registers.rflags = 0x202;
      registers.gpr[kRdi] = reinterpret_cast<std::uint64_t>(memory);
      registers.gpr[kRsi] = count;
      registers.gpr[kRsp] = reinterpret_cast<std::uint64_t>(stack_top) - 8;
      std::memcpy(stack_top - 8, &kStop, 8);
      registers.rip = reinterpret_cast<std::uint64_t>(function);
      if (cache.Run(registers, kStop) != CodeCache::RunResult::kStopped) std::abort();
    };
    run();
    g_slow = 0;
    cached[mode] = Seconds(run);
    slow = g_slow;
  }
  const double native = Seconds([&] { function(memory, count); });
  std::printf(
      "%-12s native %6.3f ns  copied %5.2f  checked %5.2f  with frames %5.2f of native  "
      "copied costs %5.2f ns, a check %5.2f ns, frames %5.2f ns (%.3f slow)\n",
      name, native / accesses * 1e9, cached[kCopied] / native, cached[kChecked] / native,
      cached[kFrames] / native, (cached[kCopied] - native) / accesses * 1e9,
      (cached[kChecked] - cached[kCopied]) / accesses * 1e9,
      (cached[kFrames] - cached[kChecked]) / accesses * 1e9,
      static_cast<double>(slow) / accesses / 9);
}

// What hot code costs whose memory has settled (docs/detection.md): each access asks that, and with
// frames as in a guest.
void MeasureKernel(const NamedKernel& kernel, std::uint64_t* memory, unsigned char* stack_top) {
  constexpr std::uint64_t kSectorBits = 9;
  constexpr std::uint64_t kUses = std::uint64_t{1} << (32 - kSectorBits);
  auto* const uses = static_cast<std::uint8_t*>(
      mmap(nullptr, kUses + 4096, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_32BIT, -1, 0));
  if (uses == MAP_FAILED) std::abort();
  uses[kUses] = 1;  // of use 0 a thread need not tell anything
  enum Mode : unsigned { kCopied, kSettled, kFrames, kModes };
  double cached[kModes] = {};
  double code[kModes] = {};
  const std::uint64_t expected = kernel.run(memory, kernel.rounds);
  for (unsigned mode = kCopied; mode < kModes; ++mode) {
    TranslatorOptions options = OwnCode();
    options.shadow_stack = mode == kFrames;
    options.handler = [](const AccessSite* site, std::uint64_t, const RegisterFile*) {
      ++g_slow;
      site->leaves_out = 1;
    };
    options.filter = true;
    const auto address = reinterpret_cast<std::uint64_t>(uses);
    options.leaving_out = {address, address + kUses, kSectorBits, 0};
    if (mode == kCopied) options.instrument = [](std::uint64_t) { return Instrument::kNone; };
    CodeCache cache(options);
    std::uint64_t result = 0;
    const auto run = [&] {
      RegisterFile registers;
      registers.rflags = 0x202;
      registers.gpr[kRdi] = reinterpret_cast<std::uint64_t>(memory);
      registers.gpr[kRsi] = kernel.rounds;
      registers.gpr[kRsp] = reinterpret_cast<std::uint64_t>(stack_top) - 8;
      std::memcpy(stack_top - 8, &kStop, 8);
      registers.rip = reinterpret_cast<std::uint64_t>(kernel.run);
      if (cache.Run(registers, kStop) != CodeCache::RunResult::kStopped) std::abort();
      result = registers.gpr[kRax];
    };
    run();
    cached[mode] = Seconds(run);
    code[mode] = static_cast<double>(cache.statistics().code_bytes) /
                 static_cast<double>(cache.statistics().instructions);
  }
  const double native = Seconds([&] { kernel.run(memory, kernel.rounds); });
  std::printf(
      "%-10s native %6.2f ms  copied %5.2f  settled %5.2f  with frames %5.2f of native  "
      "(%.0f, %.0f, %.0f bytes an instruction; %llx)\n",
      kernel.name, native * 1e3, cached[kCopied] / native, cached[kSettled] / native,
      cached[kFrames] / native, code[kCopied], code[kSettled], code[kFrames],
      static_cast<unsigned long long>(expected));
  munmap(uses, kUses + 4096);
}

int Main() {
  constexpr std::uint64_t kSize = 64u << 20;
  auto* memory = static_cast<unsigned char*>(mmap(
      nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (memory == MAP_FAILED) return 1;
  const std::uint64_t count = 2048;
  auto* numbers = reinterpret_cast<std::uint64_t*>(memory);
  unsigned char* const stack_top = memory + kSize - 4096;
  std::printf("per access (calls: per call and return); best of 9\n");
  Measure(
      "sum",
      [](std::uint64_t* at, std::uint64_t n) {
        std::uint64_t sum = 0;
        for (int i = 0; i < 1000; ++i) sum += Sum(at, n);
        return sum;
      },
      2048e3, numbers, count, stack_top);
  Measure(
      "increment",
      [](std::uint64_t* at, std::uint64_t n) {
        std::uint64_t sum = 0;
        for (int i = 0; i < 1000; ++i) sum += Increment(at, n);
        return sum;
      },
      2048e3, numbers, count, stack_top);
  Measure(
      "stencil",
      [](std::uint64_t* at, std::uint64_t n) {
        std::uint64_t sum = 0;
        for (int i = 0; i < 1000; ++i) sum += Stencil(at, n);
        return sum;
      },
      4 * 2046e3, numbers, count, stack_top);
  Measure(
      "call, ret", [](std::uint64_t*, std::uint64_t n) { return Call(n * 1000); }, 2048e3, numbers,
      count, stack_top);
  Measure(
      "call *, ret", [](std::uint64_t*, std::uint64_t n) { return CallIndirectly(n * 1000); },
      2048e3, numbers, count, stack_top);
  Measure(
      "jump *", [](std::uint64_t*, std::uint64_t n) { return JumpIndirectly(n * 1000); }, 2048e3,
      numbers, count, stack_top);
  Measure("fibonacci", RunFibonacci, 28657 * 2, numbers, count, stack_top);
  std::printf("hot code, settled memory\n");
  for (std::size_t i = 0; i < kKernelCount; ++i) {
    std::memset(memory, 0, kSize);
    MeasureKernel(kKernels[i], numbers, stack_top);
  }
  return 0;
}

}  // namespace
}  // namespace trapline

int main() { return trapline::Main(); }
