// Program addresses to names: by the modules a trap log lists, as long as files with the same build
// id are still there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "replay/log_metadata.h"

struct Dwfl;

namespace trapline {

// What is known of one program address. `module` empty: it lies in none.
struct Place {
  std::uint64_t address = 0;
  std::string module;  // path at recording
  std::string build_id;
  std::uint64_t offset = 0;  // address in the module's file (address - bias)
  std::string function;      // empty = unknown
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
  struct Opened {
    LogModule module;
    bool tried = false;
    Dwfl* session = nullptr;  // null: file gone, or another one in its place
  };

  void Open(Opened& opened) const;

  bool use_files_;
  std::vector<Opened> modules_;
  std::map<std::uint64_t, Place> places_;
};

// "function file:line", "module+0xoffset" or "0xaddress": as much as is known.
std::string PlaceText(const Place& place);

// The build id of the ELF file `path`, in hexadecimal; empty if it has none.
std::string BuildIdOf(const std::string& path);

}  // namespace trapline
