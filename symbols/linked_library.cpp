#include "symbols/linked_library.h"

#include <cstddef>

#include "symbols/container_code.h"

namespace trapline {

namespace {

std::string_view NameOf(std::string_view function) {
  // The name is what comes before the parameters, without the type of a template's result.
  int depth = 0;
  std::size_t begin = 0, end = function.size();
  for (std::size_t i = 0; i < function.size(); ++i) {
    const char c = function[i];
    if (c == '<') ++depth;
    if (c == '>') --depth;
    if (depth != 0) continue;
    if (c == '(') {
      end = i;
      break;
    }
    if (c == ' ') begin = i + 1;
  }
  return function.substr(begin, end - begin);
}

}  // namespace

bool IsLibraryContainerFunction(std::string_view function) {
  return IsContainerFunctionByName(NameOf(function));
}

bool IsLibraryFunction(std::string_view function) {
  const std::string_view name = NameOf(function);
  return name.starts_with("std::") || name.starts_with("__gnu_cxx::") ||
         name.starts_with("__cxxabiv1::");
}

}  // namespace trapline
