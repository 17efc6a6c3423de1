// The `#!` line of a script, cut up exactly as Linux does it (execve(2), "Interpreter scripts").
#ifndef TRAPLINE_HYPERVISOR_ELF_SCRIPT_H_
#define TRAPLINE_HYPERVISOR_ELF_SCRIPT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace trapline {

// Linux looks at this many bytes of a file to tell what it is.
inline constexpr size_t kScriptHeaderBytes = 256;
// An interpreter may be a script itself; the execve that would start a sixth program in the chain
// gives ELOOP.
inline constexpr int kMaxInterpreterDepth = 5;

// The new argument vector is: interpreter, argument (if any), path of the script, the old arguments
// from argv[1] on.
struct ScriptLine {
  std::string interpreter;  // may be empty ("#!" followed by a NUL or nothing): open gives ENOENT
  std::optional<std::string>
      argument;  // the rest of the line as one argument, blanks inside kept; may be empty
};

// `start` is the start of the file: its first 256 bytes, or all of a shorter file (more is
// ignored). Returns nothing if this is no script or the line names no (complete) interpreter:
// execve gives ENOEXEC. Pure function, thread-safe.
std::optional<ScriptLine> ParseScriptLine(std::string_view start);

}  // namespace trapline

#endif  // TRAPLINE_HYPERVISOR_ELF_SCRIPT_H_
