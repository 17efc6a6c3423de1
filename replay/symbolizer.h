// Program addresses to names: by the modules a trap log lists, as long as files with the same build
// id are still there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/log_metadata.h"
#include "symbols/bare_code.h"
#include "symbols/imports.h"
#include "symbols/symbolizer.h"

namespace trapline {

class ModuleImage;
class ElfSymbols;
class DebugInfo;

// What is known of one program address. `module` empty: it lies in none.
struct Place {
  std::uint64_t address = 0;
  std::string module;  // path at recording
  std::string build_id;
  std::uint64_t offset = 0;  // address in the module's file (address - bias)
  // The function there and, before it, what is inlined into it, innermost first. Never empty; a
  // frame without a name is unknown.
  std::vector<SourceFrame> frames = std::vector<SourceFrame>(1);
};

// A variable with static storage. `data.module` is not used.
struct LogVariable {
  DataPlace data;
  std::string module;  // path at recording
};

// Not thread-safe.
class LogSymbolizer {
 public:
  // `use_files` false: modules and offsets only, which is the same on every machine.
  LogSymbolizer(const std::vector<LogModule>& modules, bool use_files);
  LogSymbolizer(const LogSymbolizer&) = delete;
  LogSymbolizer& operator=(const LogSymbolizer&) = delete;
  ~LogSymbolizer();

  const Place& Resolve(std::uint64_t address);
  std::optional<LogVariable> ResolveData(std::uint64_t address);
  // Of the instruction at `address`.
  BareCode BareCodeAt(std::uint64_t address);
  // What the dynamic linker stores at `slot`.
  StoredAddress ImportAt(std::uint64_t slot);
  // The code at `address`, at most `size` bytes, as its file has it; returns how many.
  std::size_t ReadCode(std::uint64_t address, void* out, std::size_t size);

 private:
  struct Opened;

  void Open(Opened& opened) const;
  // The module at `address`, opened; null: in none.
  Opened* Find(std::uint64_t address);

  bool use_files_;
  std::vector<Opened> modules_;
  std::map<std::uint64_t, Place> places_;
};

// "function file:line (module+0xoffset)", "module+0xoffset" or "0xaddress": as much as is known of
// the innermost function, or of place.frames[frame], which says "(inlined)" if it is.
std::string PlaceText(const Place& place);
std::string FrameText(const Place& place, std::size_t frame);

// "name+0xoffset (type, size, file:line, module)", as much as is known.
std::string VariableText(const LogVariable& variable);

}  // namespace trapline
