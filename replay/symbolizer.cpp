#include "replay/symbolizer.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "symbols/debug_info.h"
#include "symbols/elf_symbols.h"
#include "symbols/imports.h"
#include "symbols/module_image.h"

namespace trapline {

struct LogSymbolizer::Opened {
  LogModule module;
  bool tried = false;
  std::unique_ptr<ModuleImage> image;  // null: file gone, or another one in its place
  std::unique_ptr<ElfSymbols> symbols;
  std::unique_ptr<DebugInfo> debug_info;  // null: none
  BareCodeFinder bare_code;
  std::unique_ptr<Imports> imports;  // null: not asked for yet
};

LogSymbolizer::LogSymbolizer(const std::vector<LogModule>& modules, bool use_files)
    : use_files_(use_files) {
  for (const LogModule& module : modules) modules_.push_back({module, false, {}, {}, {}, {}, {}});
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
  Opened* const opened = Find(address);
  if (opened == nullptr) return place;
  place.module = opened->module.path;
  place.build_id = opened->module.build_id;
  place.offset = address - opened->module.bias;
  if (opened->image != nullptr)
    place.frames = NamesAt(opened->debug_info.get(), opened->symbols.get(), place.offset);
  return place;
}

std::optional<LogVariable> LogSymbolizer::ResolveData(std::uint64_t address) {
  const Opened* const opened = Find(address);
  if (opened == nullptr || opened->image == nullptr) return std::nullopt;
  auto data =
      VariableAt(opened->debug_info.get(), opened->symbols.get(), address - opened->module.bias);
  if (!data) return std::nullopt;
  return LogVariable{std::move(*data), opened->module.path};
}

BareCode LogSymbolizer::BareCodeAt(std::uint64_t address) {
  Opened* const opened = Find(address);
  if (opened == nullptr || opened->image == nullptr) return BareCode::kNo;
  return opened->bare_code.At(opened->image->file(), opened->symbols.get(),
                              opened->debug_info.get(), address - opened->module.bias);
}

StoredAddress LogSymbolizer::ImportAt(std::uint64_t slot) {
  Opened* const opened = Find(slot);
  if (opened == nullptr || opened->image == nullptr) return {};
  if (opened->imports == nullptr)
    opened->imports = std::make_unique<Imports>(opened->image->file());
  return opened->imports->At(opened->image->file(), opened->module.bias, slot);
}

std::size_t LogSymbolizer::ReadCode(std::uint64_t address, void* out, std::size_t size) {
  const Opened* const opened = Find(address);
  if (opened == nullptr || opened->image == nullptr) return 0;
  return opened->image->file().ReadLoaded(address - opened->module.bias, out, size);
}

LogSymbolizer::Opened* LogSymbolizer::Find(std::uint64_t address) {
  for (Opened& opened : modules_) {
    if (address < opened.module.begin || address >= opened.module.end) continue;
    if (!opened.tried) Open(opened);
    return &opened;
  }
  return nullptr;
}

namespace {

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string Text(const Place& place, const SourceFrame& frame, bool show_inlined) {
  if (place.module.empty()) return fmt::format("{:#x}", place.address);
  std::string where = show_inlined && frame.inlined
                          ? "inlined"
                          : fmt::format("{}+{:#x}", FileName(place.module), place.offset);
  if (frame.function.empty()) return where;
  if (frame.file.empty()) return fmt::format("{} ({})", frame.function, where);
  return fmt::format("{} {}:{} ({})", frame.function, frame.file, frame.line, where);
}

}  // namespace

std::string PlaceText(const Place& place) { return Text(place, place.frames.front(), false); }

std::string FrameText(const Place& place, std::size_t frame) {
  return Text(place, place.frames[frame], true);
}

std::string VariableText(const LogVariable& variable) {
  const DataPlace& data = variable.data;
  std::string text = fmt::format("{}+{:#x} (", data.symbol, data.offset);
  if (!data.type.empty()) text += data.type + ", ";
  if (data.size != 0) text += fmt::format("{} byte{}, ", data.size, data.size == 1 ? "" : "s");
  if (!data.file.empty()) text += fmt::format("{}:{}, ", data.file, data.line);
  return text + fmt::format("{})", FileName(variable.module));
}

}  // namespace trapline
