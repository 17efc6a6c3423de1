// An allocator that is linked into a file with other code: which of the file's functions are its,
// by the symbol table. Loaded as a library of its own it is known by the file's name.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "symbols/memory_reader.h"
#include "symbols/modules.h"
#include "symbols/symbolizer.h"

namespace trapline {

// A function as the symbol table has it.
struct FunctionSymbol {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // `begin`: not known, up to the next one
  std::string_view name;  // as in the file
  bool is_local = false;
  // Of those that are local: the source file's number, 0 if it is not known, and its name.
  unsigned file = 0;
  std::string_view file_name = {};
};

struct LinkedAllocator {
  struct Range {
    std::uint64_t begin = 0, end = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  std::string_view name;    // "jemalloc"
  std::vector<Range> code;  // addresses in the file; lowest first, apart

  bool Contains(std::uint64_t address) const {
    const auto after = std::ranges::upper_bound(code, address, {}, &Range::begin);
    return after != code.begin() && address < std::prev(after)->end;
  }
};

// Known are jemalloc, tcmalloc, mimalloc, rpmalloc and snmalloc, by several functions each that
// others do not have, under whatever prefix. Empty: there is none.
std::vector<LinkedAllocator> FindLinkedAllocators(std::span<const FunctionSymbol> functions);
// Of a module whose file, or the debug file of that, has a symbol table: what is exported tells too
// little.
std::vector<LinkedAllocator> FindLinkedAllocators(
    const Module& module, const MemoryReader& memory,
    const std::string& debug_directory = SymbolizerOptions().debug_directory);

}  // namespace trapline
