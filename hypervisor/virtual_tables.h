// Tables of virtual functions in the program's memory (Itanium C++ ABI, 2.5).
#pragma once

#include <cstdint>

#include "translator/constant_registers.h"
#include "translator/memory_access.h"

namespace trapline {

// Whether `address` is where an object's pointer to such a table points, of a class whose code has
// run-time type information. Reads the program's memory, what of it is there; thread-safe.
bool IsVirtualTable(std::uint64_t address);

// For the translator.
TablePointers PointersToVirtualTables();

// Whether it depends on RegisterFile::xsave whether the instruction stores such pointers where they
// are already.
bool StoresVectorOverTables(const Instruction& instruction, const RegisterFile& registers);

// Whether the instruction, whose only access is this one, is about to store such pointers where
// they are already.
bool StoresVirtualTablesAgain(const Instruction& instruction, const RegisterFile& registers,
                              const MemoryAccess& access);

}  // namespace trapline
