// Declarations and types in debug information: where they are, their names, sizes, and what lies at
// an offset in them.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace trapline {

// To the next DIE of the same parent. False if there is none; a damaged file may lead backwards,
// which is none as well, so that every walk ends.
bool NextSibling(Dwarf_Die& die);

// The type of a variable, member or parameter. False if there is none.
bool TypeOf(Dwarf_Die& die, Dwarf_Die& type);

// Bytes; 0: not known.
std::uint64_t SizeOfVariable(Dwarf_Die& die);

// As declared, e.g. "const char *" or "std::atomic<int>" without its namespace; "?" where not
// known.
std::string TypeName(Dwarf_Die& type);

// What lies at an offset in an object.
struct TypePath {
  std::string suffix;  // ".member[2]"; empty: the object itself
  // How many bytes from there on belong to the same object of type _Atomic, std::atomic or their
  // like; 0: it lies in none.
  std::uint64_t atomic_bytes = 0;
};
TypePath Descend(Dwarf_Die& type, std::uint64_t offset);

// Whether an object of the type has a part of type _Atomic, std::atomic or their like, or may have.
// What it points to does not count.
bool HoldsAtomic(Dwarf_Die& type);

// The file where it is declared; null if not known.
const char* DeclarationFile(Dwarf_Die& die);

// Whether `file` belongs to the part of a language's library that makes atomic operations.
bool IsAtomicHeader(std::string_view file);

}  // namespace trapline
