// What the dynamic linker stores in a module: addresses of functions of others, and of its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "symbols/module_image.h"

namespace trapline {

struct StoredAddress {
  std::string name;           // of what another module may have
  std::uint64_t address = 0;  // of the module's own
};

// By the relocations of its file, which a stripped one has, too. Thread-safe once it is made.
class Imports {
 public:
  explicit Imports(const ElfFile& file);

  // What the dynamic linker stores at `slot` if it loads `file`, the same one, at `bias`. Neither
  // name nor address: nothing, as far as is known.
  StoredAddress At(const ElfFile& file, std::uint64_t bias, std::uint64_t slot) const;

 private:
  std::map<std::uint64_t, std::string> names_;  // by slot
};

}  // namespace trapline
