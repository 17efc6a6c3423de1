// Tables of virtual functions in the program's memory (Itanium C++ ABI, 2.5).
#pragma once

#include <cstdint>
#include <functional>

#include "translator/constant_registers.h"
#include "translator/memory_access.h"

namespace trapline {

// Whether `address` is where an object's pointer to such a table points, of a class whose code has
// run-time type information. Reads the program's memory; thread-safe.
bool IsVirtualTable(std::uint64_t address);

// For the translator, which holds up others meanwhile, so where `is_served` says that the program
// serves the page faults of an address itself nothing is read, and no table found.
TablePointers PointersToVirtualTables(const std::function<bool(std::uint64_t address)>& is_served);

// Whether it depends on RegisterFile::xsave whether the instruction stores such pointers where they
// are already.
bool StoresVectorOverTables(const Instruction& instruction, const RegisterFile& registers);

// Whether the instruction, whose only access is this one, is about to store such pointers where
// they are already.
bool StoresVirtualTablesAgain(const Instruction& instruction, const RegisterFile& registers,
                              const MemoryAccess& access);

}  // namespace trapline
