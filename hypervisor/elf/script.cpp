#include "hypervisor/elf/script.h"

namespace trapline {
namespace {

constexpr std::string_view kBlanks = " \t";
// What ends the interpreter's name. The NUL counts, hence the explicit length.
constexpr std::string_view kTerminators(" \t\0", 3);

// A C string's content: up to the first NUL.
std::string UpToNul(std::string_view text) { return std::string(text.substr(0, text.find('\0'))); }

}  // namespace

std::optional<ScriptLine> ParseScriptLine(std::string_view start) {
  // A shorter file reads as if padded with NULs.
  std::string buffer(start.substr(0, kScriptHeaderBytes));
  buffer.resize(kScriptHeaderBytes);
  const std::string_view text(buffer);
  if (!text.starts_with("#!")) return std::nullopt;

  size_t end = text.find_first_of(std::string_view("\n\0", 2));
  if (end == std::string_view::npos || text[end] != '\n') {
    // No newline: take the line up to the last byte, which is lost, but never a name that may be
    // incomplete.
    const size_t name = text.find_first_not_of(kBlanks, 2);
    if (name == std::string_view::npos) return std::nullopt;
    if (text.find_first_of(kTerminators, name) == std::string_view::npos) return std::nullopt;
    end = kScriptHeaderBytes - 1;
  }
  const size_t last = text.find_last_not_of(kBlanks, end - 1);  // at least the '!' is there
  const std::string_view line = text.substr(2, last + 1 - 2);

  const size_t name = line.find_first_not_of(kBlanks);
  if (name == std::string_view::npos) return std::nullopt;
  const size_t separator = line.find_first_of(kTerminators, name);
  ScriptLine result{std::string(line.substr(name, separator - name)), std::nullopt};
  if (separator != std::string_view::npos && line[separator] != '\0') {
    const size_t argument = line.find_first_not_of(kBlanks, separator);
    if (argument != std::string_view::npos) result.argument = UpToNul(line.substr(argument));
  }
  return result;
}

}  // namespace trapline
