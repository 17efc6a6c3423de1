// The addresses of a program's symbols, for tests.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace trapline {

// Name -> address in the file, of all functions; empty if there is no symbol table.
std::map<std::string, std::uint64_t> FunctionsOf(const std::string& path);

}  // namespace trapline
