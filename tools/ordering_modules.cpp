#include "tools/ordering_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "hypervisor/process.h"
#include "tools/place_names.h"

namespace trapline {
namespace {

// oneTBB: the pools of tasks, and its allocator's lists of blocks. Abseil's mutexes and spinning
// locks, userspace RCU, PyTorch's pool of threads, GCC's transactions, which access memory for the
// program: nothing but synchronisation.
constexpr const char* kSilentModules[] = {"libtbb.so*",
                                          "libtbbmalloc.so*",
                                          "libtbbmalloc_proxy.so*",
                                          "libabsl_base.so*",
                                          "libabsl_synchronization.so*",
                                          "liburcu*.so*",
                                          "libpthreadpool.so*",
                                          "libitm.so*"};
// Atomic operations that are too large for one instruction that every processor has.
constexpr const char* kAtomicOperations = "libatomic.so*";

}  // namespace

OrderingModules::OrderingModules(const std::vector<std::string>& atomic,
                                 const std::vector<std::string>& plain,
                                 const std::vector<std::string>& track,
                                 std::function<bool(const std::string& path)> is_untracked,
                                 Modules& modules)
    : silent_(std::begin(kSilentModules), std::end(kSilentModules)),
      counting_(track),
      is_untracked_(std::move(is_untracked)),
      modules_(modules) {
  std::copy_if(atomic.begin(), atomic.end(), std::back_inserter(silent_), &NamesSharedLibrary);
  std::copy_if(plain.begin(), plain.end(), std::back_inserter(counting_), &NamesSharedLibrary);
}

bool OrderingModules::Names(const Module& module) const {
  return (AnyNamesFile(silent_, module.path) || NamesFile(kAtomicOperations, module.path)) &&
         !AnyNamesFile(counting_, module.path);
}

bool OrderingModules::IsSilent(const Module& module) const {
  return AnyNamesFile(silent_, module.path);
}

const std::vector<LinkedAllocator>& OrderingModules::AllocatorsIn(const Module& module) {
  const std::lock_guard lock(allocators_mutex_);
  const auto [at, is_new] = allocators_.try_emplace(module.index);
  if (is_new && !module.is_vdso() && !AnyNamesFile(counting_, module.path) &&
      !is_untracked_(module.path))
    at->second = FindLinkedAllocators(module, modules_.memory());
  return at->second;
}

bool OrderingModules::ContainsNew(std::uint64_t ip) {
  const Module* const module = modules_.Find(ip);
  if (module == nullptr) return false;
  return Names(*module) || std::ranges::any_of(AllocatorsIn(*module), [&](const auto& allocator) {
           return allocator.Contains(ip - module->bias);
         });
}

std::string OrderingModules::Explanation() {
  std::string text;
  const auto explain = [&](std::string_view what, bool is_silent) {
    text += fmt::format("trapline: all loads and stores of {} taken for atomic ones{}\n", what,
                        is_silent ? ", and none for an access that can race" : "");
  };
  for (const Module* const module : modules_.Loaded()) {
    if (Names(*module)) {
      explain(module->name(), IsSilent(*module));
      continue;
    }
    for (const LinkedAllocator& allocator : AllocatorsIn(*module))
      explain(fmt::format("{} in {}", allocator.name, module->name()), true);
  }
  return text;
}

void OrderingModules::Update() {
  generation_ = modules_.generation();
  loaded_.clear();
  for (const Module* const module : modules_.Loaded()) {
    if (Names(*module)) {
      loaded_.push_back({module->begin, module->end - module->begin, IsSilent(*module)});
      continue;
    }
    for (const LinkedAllocator& allocator : AllocatorsIn(*module)) {
      for (const auto& [begin, end] : allocator.code)
        loaded_.push_back({module->bias + begin, end - begin, true});
    }
  }
  std::ranges::sort(loaded_, {}, &Range::begin);
}

}  // namespace trapline
