// Runs a function with chosen registers natively or through the code cache and writes down every
// memory access.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "translator/code_cache.h"
#include "translator/memory_access.h"

namespace trapline {

struct TracedAccess {
  std::uint64_t rip = 0;
  MemoryAccess access;

  bool operator==(const TracedAccess&) const = default;
};

struct TracedRun {
  std::uint64_t result = 0;  // rax
  std::vector<TracedAccess> accesses;
  std::uint64_t instructions = 0;  // of single-stepped runs
  std::string failure;             // empty: it ran to its end
};

// Up to six integer arguments; the function runs on a stack of its own, the same for every run, so
// that two runs over the same memory have the same accesses. Not reentrant.
using Arguments = std::vector<std::uint64_t>;

// By the trap flag, one instruction at a time, with Accesses on each.
TracedRun RunBySingleSteps(const void* function, const Arguments& arguments);

// Through a new code cache with every instruction instrumented. `options` may preset anything but
// read_code and handler.
TracedRun RunInCache(const void* function, const Arguments& arguments,
                     TranslatorOptions options = {});

// The program's registers before each instruction, without repetitions; rflags holds only the
// status and direction flags. By the trap flag natively, and by the trap flag in the cache with
// CodeCache::Recover on each instruction of it.
std::vector<RegisterFile> StatesNatively(const void* function, const Arguments& arguments);
// `prepare` is called before each of the cache's two runs: one to translate, one to step. `options`
// may preset anything but read_code.
std::vector<RegisterFile> StatesInCache(const void* function, const Arguments& arguments,
                                        const std::function<void()>& prepare,
                                        TranslatorOptions options = {});

// Natively, nothing recorded.
std::uint64_t RunNatively(const void* function, const Arguments& arguments);

// What a cache under test needs: reads the process's own code, records into the list that
// RecordedAccesses gives.
TranslatorOptions RecordingOptions();
std::vector<TracedAccess>& RecordedAccesses();
// The registers with which `function` starts: arguments, stack, and `stop` as the return address.
RegisterFile RegistersFor(const void* function, const Arguments& arguments, std::uint64_t stop);

std::string Text(const TracedAccess& access);

}  // namespace trapline
