// The C++ library, linked into the program's own file: what it does for itself is not the
// program's, but there is no module to tell it by.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace trapline {

// Whether a function as the demangler writes it ("std::ostream&
// std::ostream::_M_insert<long>(long)") is the C++ library's.
bool IsLibraryFunction(std::string_view function);

// Whether it handles its callers' strings and containers (container_code.h).
bool IsLibraryContainerFunction(std::string_view function);

template <class Place>
bool IsLinkedContainerCode(const Place& place) {
  return place.frames.size() == 1 && place.frames[0].file.empty() &&
         IsLibraryContainerFunction(place.frames[0].function);
}

// Whether an access was made by such code: by a function of the library without debug info, unlike
// its caller in the same file. `stack`: innermost first, the instruction and then return addresses.
// resolve(address) gives what is known of an address: a CodePlace, or a type with the same `module`
// (the default value: none) and `frames`.
template <class Resolve>
bool IsLinkedLibrary(const std::vector<std::uint64_t>& stack, Resolve&& resolve) {
  if (stack.empty()) return false;
  // What it does with its caller's strings and containers is the caller's.
  std::size_t at = 0;
  const auto code_at = [&] { return at == 0 ? stack[0] : stack[at] - 1; };
  while (at + 1 < stack.size() && IsLinkedContainerCode(resolve(code_at()))) ++at;
  const auto& place = resolve(code_at());
  if (place.module == std::decay_t<decltype(place.module)>() || place.frames.size() != 1 ||
      !place.frames[0].file.empty() || !IsLibraryFunction(place.frames[0].function))
    return false;
  // Rust's std is generic, and compiled with the program: its symbols name no parameters.
  if (place.frames[0].function.find('(') == std::string::npos) return false;
  return std::any_of(stack.begin() + at + 1, stack.end(), [&](std::uint64_t address) {
    const auto& caller = resolve(address - 1);
    return caller.module == place.module && !caller.frames.back().file.empty();
  });
}

}  // namespace trapline
