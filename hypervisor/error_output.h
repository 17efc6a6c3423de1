// Where the monitor's messages go: the standard error it was started with, which the program may
// have closed, or given another meaning, by the time there is something to say.
#pragma once

#include <string>

namespace trapline {

// Remembers the standard error of now. Files and terminals are kept open for messages; a pipe is
// not, for its reader may wait for the program to close it. Before other threads start.
void KeepErrorOutput();

// All of `text`, as far as there is a place: nowhere if there was none at the start, for then the
// program's own files have that descriptor. Raises no SIGPIPE. Thread-safe; not async-signal-safe.
void WriteError(const std::string& text);

}  // namespace trapline
