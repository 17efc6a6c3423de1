#include "symbols/linked_library.h"

#include <cstddef>

namespace trapline {

bool IsLibraryFunction(std::string_view function) {
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
  const std::string_view name = function.substr(begin, end - begin);
  return name.starts_with("std::") || name.starts_with("__gnu_cxx::") ||
         name.starts_with("__cxxabiv1::");
}

}  // namespace trapline
