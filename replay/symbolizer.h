// Program addresses to names: by the modules a trap log lists, as long as files with the same build
// id are still there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "replay/log_metadata.h"

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
  std::string function;      // the innermost, if others are inlined there; empty = unknown
  std::string file;
  int line = 0;
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

 private:
  struct Opened;

  void Open(Opened& opened) const;

  bool use_files_;
  std::vector<Opened> modules_;
  std::map<std::uint64_t, Place> places_;
};

// "function file:line", "module+0xoffset" or "0xaddress": as much as is known.
std::string PlaceText(const Place& place);

}  // namespace trapline
