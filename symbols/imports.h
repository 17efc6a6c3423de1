// Which functions a module takes from others.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "symbols/module_image.h"

namespace trapline {

// By the relocations of its file, which a stripped one has, too. Thread-safe once it is made.
class Imports {
 public:
  explicit Imports(const ElfFile& file);

  // The name of what the dynamic linker stores the address of at `slot`, an address as the file has
  // it; empty: nothing, as far as is known.
  std::string At(std::uint64_t slot) const;

 private:
  std::map<std::uint64_t, std::string> names_;  // by slot
};

}  // namespace trapline
