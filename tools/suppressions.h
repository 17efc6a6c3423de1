// Which races the user does not want to hear of: the file behind `--suppressions`
// (docs/report.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "replay/status.h"

namespace trapline {

// A value; const functions are thread-safe.
class Suppressions {
 public:
  struct Rule {
    std::string pattern;  // glob: `*` any characters, `?` one
    int line = 0;         // in the file
  };

  // Adds the rules of a file's text: lines `race:GLOB`, `#` comments, empty lines. `name` stands
  // for the file in messages. All bytes are allowed; the first line that is not understood is an
  // error and nothing is added.
  Status Parse(std::string_view text, std::string_view name);

  // Adds the rules of the file `path`.
  Status ReadFile(const std::string& path);

  // Whether a rule matches one of a frame's names: the whole function name (or all before its
  // parameter list), the whole path of the file or module, or a tail of that path from a '/' on.
  bool Matches(std::string_view function, std::string_view file, std::string_view module) const;

  const std::vector<Rule>& rules() const { return rules_; }

 private:
  std::vector<Rule> rules_;
};

// Whether all of `text` matches the glob. Time: at most |pattern| * |text|.
bool GlobMatches(std::string_view pattern, std::string_view text);

}  // namespace trapline
