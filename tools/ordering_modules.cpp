#include "tools/ordering_modules.h"

#include <fmt/format.h>

#include <algorithm>

#include "hypervisor/process.h"
#include "tools/place_names.h"

namespace trapline {
namespace {

// oneTBB: the pools of tasks, and its allocator's lists of blocks.
constexpr const char* kSilentModules[] = {"libtbb.so*", "libtbbmalloc.so*",
                                          "libtbbmalloc_proxy.so*"};
// Atomic operations that are too large for one instruction that every processor has.
constexpr const char* kAtomicOperations = "libatomic.so*";

bool Match(const std::vector<std::string>& globs, const Module& module) {
  return std::ranges::any_of(globs,
                             [&](const std::string& glob) { return NamesFile(glob, module.path); });
}

}  // namespace

OrderingModules::OrderingModules(const std::vector<std::string>& atomic,
                                 const std::vector<std::string>& plain,
                                 const std::vector<std::string>& track, Modules& modules)
    : silent_(std::begin(kSilentModules), std::end(kSilentModules)),
      counting_(track),
      modules_(modules) {
  std::copy_if(atomic.begin(), atomic.end(), std::back_inserter(silent_), &NamesSharedLibrary);
  std::copy_if(plain.begin(), plain.end(), std::back_inserter(counting_), &NamesSharedLibrary);
}

bool OrderingModules::Names(const Module& module) const {
  return (Match(silent_, module) || NamesFile(kAtomicOperations, module.path)) &&
         !Match(counting_, module);
}

bool OrderingModules::IsSilent(const Module& module) const { return Match(silent_, module); }

bool OrderingModules::ContainsNew(std::uint64_t ip) const {
  const Module* const module = modules_.Find(ip);
  return module != nullptr && Names(*module);
}

std::string OrderingModules::Explanation() {
  std::string text;
  for (const Module* const module : modules_.Loaded()) {
    if (!Names(*module)) continue;
    text += fmt::format("trapline: all loads and stores of {} taken for atomic ones{}\n",
                        module->name(),
                        IsSilent(*module) ? ", and none for an access that can race" : "");
  }
  return text;
}

void OrderingModules::Update() {
  generation_ = modules_.generation();
  loaded_.clear();
  for (const Module* const module : modules_.Loaded()) {
    if (Names(*module))
      loaded_.push_back({module->begin, module->end - module->begin, IsSilent(*module)});
  }
}

}  // namespace trapline
