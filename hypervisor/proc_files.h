// What the program may see of itself under /proc. The monitor is the same process, so /proc/self
// tells the truth except where it would show the monitor: the executable, the memory map, the list
// of descriptors.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace trapline {

class Process;

enum class OwnProcFile { kNone, kExecutable, kMaps, kStatus, kStat };

// Which file of its own the program means by `path`; cheap for paths outside /proc.
OwnProcFile ClassifyProcPath(const std::string& path);

// What /proc/PID/exe of another process should show when that process is a monitor like this one:
// its program. Nothing when it is none.
std::optional<std::string> ProgramOfOther(const std::string& path);

// A descriptor of a snapshot of maps, status or stat, which `path` names, as the program would have
// them natively (its own mappings, its own number of threads), or -errno.
int OpenSnapshot(Process& process, OwnProcFile file, const std::string& path, bool close_on_exec);

// Drops the monitor's descriptors and threads from what getdents64 returned for `fd`, if that is a
// list of them. Returns the new number of bytes.
long FilterOwnDirectory(Process& process, int fd, std::uint64_t buffer, long bytes);

// The process that traces the calling thread (ptrace), 0 if none does.
pid_t TracerOfThisThread();

}  // namespace trapline
