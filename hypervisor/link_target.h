// Where symbolic links lead, above all those in /proc.
#pragma once

#include <unistd.h>

#include <climits>
#include <string>

namespace trapline {

// Empty if `link` is none that can be read.
inline std::string LinkTarget(const std::string& link) {
  char target[PATH_MAX];
  const ssize_t length = readlink(link.c_str(), target, sizeof target);
  return {target, length > 0 ? static_cast<std::size_t>(length) : 0};
}

// The link to the file that `fd` is open on: of the calling thread, for /proc/self has none once
// the process's initial thread has ended.
inline std::string DescriptorLink(int fd) { return "/proc/thread-self/fd/" + std::to_string(fd); }

// The monitor's executable.
inline std::string OwnExecutable() { return LinkTarget("/proc/thread-self/exe"); }

}  // namespace trapline
