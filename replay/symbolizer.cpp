#include "replay/symbolizer.h"

#include <cxxabi.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace trapline {
namespace {

std::string Hexadecimal(const unsigned char* bytes, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

std::string Demangled(const char* name) {
  int error = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(name, nullptr, nullptr, &error), &std::free);
  return error == 0 ? plain.get() : name;
}

const Dwfl_Callbacks& Callbacks() {
  static char* debug_path = nullptr;
  static const Dwfl_Callbacks kCallbacks = {dwfl_build_id_find_elf, dwfl_standard_find_debuginfo,
                                            dwfl_offline_section_address, &debug_path};
  return kCallbacks;
}

}  // namespace

LogSymbolizer::LogSymbolizer(const std::vector<LogModule>& modules, bool use_files)
    : use_files_(use_files) {
  for (const LogModule& module : modules) modules_.push_back({module});
}

LogSymbolizer::~LogSymbolizer() {
  for (const Opened& opened : modules_) {
    if (opened.session != nullptr) dwfl_end(opened.session);
  }
}

std::string BuildIdOf(const std::string& path) {
  elf_version(EV_CURRENT);
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  std::string id;
  if (Elf* elf = elf_begin(descriptor, ELF_C_READ_MMAP, nullptr); elf != nullptr) {
    const void* bytes = nullptr;
    const ssize_t size = dwelf_elf_gnu_build_id(elf, &bytes);
    if (size > 0)
      id = Hexadecimal(static_cast<const unsigned char*>(bytes), static_cast<int>(size));
    elf_end(elf);
  }
  close(descriptor);
  return id;
}

void LogSymbolizer::Open(Opened& opened) const {
  opened.tried = true;
  // Another file in the module's place would give wrong names with confidence.
  if (!use_files_ || opened.module.build_id.empty() ||
      BuildIdOf(opened.module.path) != opened.module.build_id) {
    return;
  }
  Dwfl* session = dwfl_begin(&Callbacks());
  if (session == nullptr) return;
  dwfl_report_begin(session);
  const bool reported =
      dwfl_report_elf(session, opened.module.path.c_str(), opened.module.path.c_str(), -1,
                      opened.module.bias, true) != nullptr;
  dwfl_report_end(session, nullptr, nullptr);
  if (reported) {
    opened.session = session;
  } else {
    dwfl_end(session);
  }
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
    if (opened.session == nullptr) break;
    Dwfl_Module* module = dwfl_addrmodule(opened.session, address);
    if (module == nullptr) break;
    if (const char* name = dwfl_module_addrname(module, address); name != nullptr) {
      place.function = Demangled(name);
    }
    if (Dwfl_Line* line = dwfl_module_getsrc(module, address); line != nullptr) {
      const char* file = dwfl_lineinfo(line, nullptr, &place.line, nullptr, nullptr, nullptr);
      if (file != nullptr) place.file = file;
    }
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
