// The code in the C++ library's file that handles the program's own objects: what the headers'
// templates call for strings, lists, trees and hash tables. It takes no locks and has no state of
// its own; what it reads and writes is its caller's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trapline {

// Of libstdc++ or libc++, by its name in the symbol table.
bool IsContainerFunction(std::string_view mangled);
// The same by the name before the parameters, as the demangler writes it.
bool IsContainerFunctionByName(std::string_view name);

// Bytes of a file.
struct CodePart {
  std::uint64_t begin = 0, end = 0;
};

// Where such functions are that the file exports, ascending. None where it is not one of the two
// libraries' by its name, or cannot be read. Takes 1 ms for libstdc++. Thread-safe.
std::vector<CodePart> ContainerCodeOf(const std::string& path);

}  // namespace trapline
