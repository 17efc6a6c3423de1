// Fuzz target: any bytes as a suppressions file, and as the names it is applied to. With clang and
// TRAPLINE_FUZZ it is a libFuzzer target; otherwise it runs over the files it is given.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tools/suppressions.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  trapline::Suppressions suppressions;
  const bool good = suppressions.Parse(text, "input").ok();
  if (!good && !suppressions.rules().empty()) abort();  // all or nothing
  const std::string_view name = text.substr(0, text.find('\n'));
  static_cast<void>(suppressions.Matches(name, text, name));
  for (const auto& rule : suppressions.rules()) {
    // A rule without wildcards matches itself.
    if (rule.pattern.find_first_of("*?") == std::string_view::npos &&
        !suppressions.Matches(rule.pattern, {}, {})) {
      abort();
    }
  }
  return 0;
}
