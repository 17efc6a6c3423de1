#include "replay/symbolizer.h"

#include <fmt/format.h>

#include "symbols/debug_info.h"
#include "symbols/elf_symbols.h"
#include "symbols/module_image.h"
#include "symbols/symbolizer.h"

namespace trapline {

struct LogSymbolizer::Opened {
  LogModule module;
  bool tried = false;
  std::unique_ptr<ModuleImage> image;  // null: file gone, or another one in its place
  std::unique_ptr<ElfSymbols> symbols;
  std::unique_ptr<DebugInfo> debug_info;  // null: none
};

LogSymbolizer::LogSymbolizer(const std::vector<LogModule>& modules, bool use_files)
    : use_files_(use_files) {
  for (const LogModule& module : modules) modules_.push_back({module, false, {}, {}, {}});
}

LogSymbolizer::~LogSymbolizer() = default;

void LogSymbolizer::Open(Opened& opened) const {
  opened.tried = true;
  // Another file in the module's place would give wrong names with confidence.
  if (!use_files_ || opened.module.build_id.empty()) return;
  opened.image = ModuleImage::OpenFile(opened.module.path, opened.module.build_id,
                                       SymbolizerOptions().debug_directory);
  if (opened.image == nullptr) return;
  opened.symbols = std::make_unique<ElfSymbols>(*opened.image);
  if (Dwarf* dwarf = opened.image->dwarf(); dwarf != nullptr)
    opened.debug_info = std::make_unique<DebugInfo>(dwarf);
}

const Place& LogSymbolizer::Resolve(std::uint64_t address) {
  const auto [at, is_new] = places_.try_emplace(address);
  Place& place = at->second;
  if (!is_new) return place;
  place.address = address;
  for (Opened& opened : modules_) {
    if (address < opened.module.begin || address >= opened.module.end) continue;
    place.module = opened.module.path;
    place.build_id = opened.module.build_id;
    place.offset = address - opened.module.bias;
    if (!opened.tried) Open(opened);
    if (opened.image == nullptr) break;
    const SourceFrame frame =
        NamesAt(opened.debug_info.get(), opened.symbols.get(), place.offset).front();
    place.function = frame.function;
    place.file = frame.file;
    place.line = frame.line;
    break;
  }
  return place;
}

std::string PlaceText(const Place& place) {
  if (place.module.empty()) return fmt::format("{:#x}", place.address);
  std::string module =
      fmt::format("{}+{:#x}", place.module.substr(place.module.rfind('/') + 1), place.offset);
  if (place.function.empty()) return module;
  if (place.file.empty()) return fmt::format("{} ({})", place.function, module);
  return fmt::format("{} {}:{} ({})", place.function, place.file, place.line, module);
}

}  // namespace trapline
