// The files that a program was built from: where they are, and what they hold.
#pragma once

#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace trapline {

// Whether the file belongs to the compiler or the C or C++ library.
bool IsSystemFile(std::string_view path);
bool IsRegularFile(const std::string& path);
// Without "." and "..", by its text alone.
std::string NormalPath(const std::string& path);
// Each directory and those above it, up to the root or one of the system's, neither included; each
// once.
std::vector<std::string> WithThoseAbove(const std::vector<std::string>& directories);

// The whole file, if it has at most `most` bytes and was written by `built`. False: it is not read.
bool ReadSource(const std::string& path, std::size_t most, std::time_t built, std::string& text);

}  // namespace trapline
