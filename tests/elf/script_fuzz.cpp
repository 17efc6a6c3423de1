// Any bytes at all: a script line is either refused or made of parts of the input.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hypervisor/elf/script.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto script = trapline::ParseScriptLine(text);
  if (!script) return 0;
  if (!text.starts_with("#!")) std::abort();
  if (script->interpreter.find_first_of(std::string_view(" \t\n\0", 4)) != std::string::npos) {
    std::abort();
  }
  if (text.find(script->interpreter) == std::string_view::npos) std::abort();
  if (script->argument) {
    if (script->argument->find_first_of(std::string_view("\n\0", 2)) != std::string::npos) {
      std::abort();
    }
    if (text.find(*script->argument) == std::string_view::npos) std::abort();
  }
  return 0;
}
