// The symbol tables of one module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "symbols/module_image.h"

namespace trapline {

// Addresses are those in the file (st_value). Not thread-safe to build; const functions are.
class ElfSymbols {
 public:
  struct Symbol {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;  // begin + size; of symbols without a size: the next symbol's begin
    const char* name = "";  // as in the file; valid as long as the image
  };

  // From .symtab of the file or its debug file; without one, from .dynsym. None at all is an empty
  // table.
  explicit ElfSymbols(ModuleImage& image);

  // The function, variable, or thread-local variable (offset in the TLS block) that covers
  // `address`; null if none does. Of several the one a programmer would name: global before local,
  // without leading underscores before with.
  const Symbol* FindFunction(std::uint64_t address) const { return Find(functions_, address); }
  const Symbol* FindObject(std::uint64_t address) const { return Find(objects_, address); }
  const Symbol* FindThreadLocal(std::uint64_t offset) const { return Find(thread_locals_, offset); }
  // All, lowest first.
  const std::vector<Symbol>& functions() const { return functions_; }
  const std::vector<Symbol>& objects() const { return objects_; }

 private:
  bool Read(const ElfFile& file, unsigned section_type);
  static const Symbol* Find(const std::vector<Symbol>& symbols, std::uint64_t address);

  // Sorted by begin, one for each begin.
  std::vector<Symbol> functions_, objects_, thread_locals_;
};

}  // namespace trapline
