// Which lines of a source the preprocessor leaves out on Linux on x86-64, whatever the program was
// built with: what portable programs keep for other systems.
#pragma once

#include <vector>

#include "symbols/source_text.h"

namespace trapline {

// Follows the conditional groups of one text (#if, #elif, #else, #endif). Of conditions only those
// are judged that ask for a system's, a processor's or a compiler's own macros, and `!`, `&&` and
// `||` of them; all others may hold.
class ConditionalGroups {
 public:
  // Of all directives, one after the other.
  void Pass(const SourceText::Directive& directive);
  // Whether what comes now is left out.
  bool left_out() const;

 private:
  struct Group {
    bool left_out = false;  // this part of it
    bool was_in = false;    // a part before surely was not
  };
  std::vector<Group> groups_;  // innermost last
};

}  // namespace trapline
