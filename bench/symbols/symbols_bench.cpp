// What a call stack costs, per frame: warmed up (the rule of every pc known) and for the first
// time; with memory read by a copy and by process_vm_readv. And what names cost.
#include <benchmark/benchmark.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "symbols/modules.h"
#include "symbols/symbolizer.h"
#include "symbols/unwinder.h"

namespace {

using trapline::MemoryReader;
using trapline::Modules;
using trapline::Symbolizer;
using trapline::Unwinder;
using trapline::UnwindRegisters;

// As cheap as a reader that trusts the address can be.
const MemoryReader kCopy = {[](void*, std::uint64_t address, void* out, std::size_t size) {
                              std::memcpy(out, reinterpret_cast<const void*>(address), size);
                              return true;
                            },
                            nullptr};

UnwindRegisters Registers(const ucontext_t& context) {
  const auto& from = context.uc_mcontext.gregs;
  const auto get = [&](int which) { return static_cast<std::uint64_t>(from[which]); };
  UnwindRegisters registers;
  registers.rbx = get(REG_RBX);
  registers.rbp = get(REG_RBP);
  registers.rsp = get(REG_RSP);
  registers.r12 = get(REG_R12);
  registers.r13 = get(REG_R13);
  registers.r14 = get(REG_R14);
  registers.r15 = get(REG_R15);
  registers.rip = get(REG_RIP);
  return registers;
}

volatile long sink;

// Frames as programs have them: some locals, callee-saved registers in use, different functions.
template <int kWhich, typename Body>
[[gnu::noinline]] long Nest(int depth, long a, long b, const Body& body) {
  const long kept = a * 3 + kWhich;
  char room[16 + 40 * kWhich];
  room[kWhich] = static_cast<char>(b);
  asm volatile("" : : "r"(room) : "memory");
  if (depth == 0) {
    body();
  } else {
    sink = sink + Nest<(kWhich + 1) % 5>(depth - 1, b, kept, body);
  }
  return kept + a + b + room[kWhich];
}

template <typename Body>
void InFrames(int depth, const Body& body) {
  sink = Nest<0>(depth, 1, 2, [&] {
    ucontext_t context;
    getcontext(&context);
    body(Registers(context));
  });
}

void PerFrame(benchmark::State& state, std::size_t frames) {
  state.counters["frames"] = static_cast<double>(frames);
  state.counters["per_frame"] = benchmark::Counter(
      static_cast<double>(frames),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void Warm(benchmark::State& state, const MemoryReader& memory) {
  Modules modules;
  Unwinder unwinder(modules);
  InFrames(static_cast<int>(state.range(0)), [&](const UnwindRegisters& registers) {
    std::vector<std::uint64_t> pcs(256);
    std::size_t frames = 0;
    for (auto _ : state) {
      frames = unwinder.Unwind(registers, memory, pcs);
      benchmark::DoNotOptimize(pcs.data());
    }
    PerFrame(state, frames);
  });
}

// A table as large as that of a big program: the rules are not all in the first cache.
void WarmLargeTable(benchmark::State& state) {
  Modules modules;
  Unwinder unwinder(modules);
  // Nothing is on the stack of these.
  const auto base = reinterpret_cast<std::uint64_t>(&WarmLargeTable);
  const std::vector<std::uint64_t> empty(4096);
  UnwindRegisters any;
  any.rsp = any.rbp = reinterpret_cast<std::uint64_t>(empty.data() + 2048);
  std::uint64_t first[1];
  for (std::uint64_t i = 0; i < 20000; ++i) {
    any.rip = base + i;
    unwinder.Unwind(any, trapline::OwnMemory(), first);
  }
  InFrames(30, [&](const UnwindRegisters& registers) {
    std::vector<std::uint64_t> pcs(256);
    std::size_t frames = 0;
    for (auto _ : state) {
      frames = unwinder.Unwind(registers, kCopy, pcs);
      benchmark::DoNotOptimize(pcs.data());
    }
    PerFrame(state, frames);
  });
}

// Every rule worked out anew; the files are open.
void Cold(benchmark::State& state) {
  Modules modules;
  Unwinder unwinder(modules);
  InFrames(30, [&](const UnwindRegisters& registers) {
    std::vector<std::uint64_t> pcs(256);
    std::size_t frames = unwinder.Unwind(registers, kCopy, pcs);
    for (auto _ : state) {
      state.PauseTiming();
      unwinder.OnUnmap(0, 1ull << 47);
      modules.Refresh();
      state.ResumeTiming();
      frames = unwinder.Unwind(registers, kCopy, pcs);
    }
    PerFrame(state, frames);
  });
}

void ResolveCode(benchmark::State& state) {
  Modules modules;
  Symbolizer symbolizer(modules);
  const auto address = reinterpret_cast<std::uint64_t>(&ResolveCode);
  std::uint64_t offset = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(symbolizer.ResolveCode(address + offset));
    offset = (offset + 7) % 256;
  }
}

void IsAtomicKnown(benchmark::State& state) {
  Modules modules;
  Symbolizer symbolizer(modules);
  const auto address = reinterpret_cast<std::uint64_t>(&IsAtomicKnown);
  for (auto _ : state) benchmark::DoNotOptimize(symbolizer.IsAtomicByDebugInfo(address));
}

BENCHMARK_CAPTURE(Warm, copied, kCopy)->Arg(10)->Arg(30)->Arg(100);
BENCHMARK_CAPTURE(Warm, process_vm_readv, trapline::OwnMemory())->Arg(10)->Arg(30)->Arg(100);
BENCHMARK(WarmLargeTable);
BENCHMARK(Cold);
BENCHMARK(ResolveCode);
BENCHMARK(IsAtomicKnown);

}  // namespace

BENCHMARK_MAIN();
