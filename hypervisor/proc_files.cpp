#include "hypervisor/proc_files.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include "hypervisor/guest_copy.h"
#include "hypervisor/link_target.h"
#include "hypervisor/process.h"

namespace trapline {
namespace {

// The part of `path` after this process's own directory in /proc, if it is in it.
std::optional<std::string_view> InOwnProc(std::string_view path) {
  constexpr std::string_view kProc = "/proc/";
  if (!path.starts_with(kProc)) return std::nullopt;
  path.remove_prefix(kProc.size());
  const std::string pid = std::to_string(getpid());
  for (const std::string_view own : {std::string_view("self/"), std::string_view("thread-self/")}) {
    if (path.starts_with(own)) return path.substr(own.size());
  }
  if (path.starts_with(pid) && path.substr(pid.size()).starts_with('/'))
    return path.substr(pid.size() + 1);
  return std::nullopt;
}

}  // namespace

OwnProcFile ClassifyProcPath(const std::string& path) {
  const auto name = InOwnProc(path);
  if (!name) return OwnProcFile::kNone;
  if (*name == "exe") return OwnProcFile::kExecutable;
  if (*name == "maps") return OwnProcFile::kMaps;
  if (*name == "status") return OwnProcFile::kStatus;
  if (*name == "stat") return OwnProcFile::kStat;
  return OwnProcFile::kNone;
}

std::optional<std::string> ProgramOfOther(const std::string& path) {
  constexpr std::string_view kProc = "/proc/", kExe = "/exe";
  if (!path.starts_with(kProc) || !path.ends_with(kExe)) return std::nullopt;
  const std::string directory = path.substr(0, path.size() - kExe.size());
  const std::string mine = OwnExecutable();
  if (mine.empty() || mine != LinkTarget(path)) return std::nullopt;
  // The program lies below everything of the monitor's, so its file is the first one mapped.
  std::ifstream maps(directory + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (const std::size_t at = line.find('/'); at != std::string::npos) return line.substr(at);
  }
  return std::nullopt;
}

namespace {

std::string MapsText(Process& process, const std::string& file) {
  AddressSpace& space = process.address_space();
  const auto regions = space.Regions();
  const Range stack = space.stack();
  std::ifstream host(file);
  std::ostringstream out;
  for (std::string line; std::getline(host, line);) {
    std::uint64_t start = 0, end = 0;
    const char* at = line.data();
    const char* const line_end = line.data() + line.size();
    at = std::from_chars(at, line_end, start, 16).ptr + 1;
    at = std::from_chars(at, line_end, end, 16).ptr + 1;
    // rwxp offset device inode path
    std::istringstream fields{std::string(at, line_end)};
    std::string permissions, device;
    std::uint64_t offset = 0, inode = 0;
    permissions.resize(4, '-');
    fields >> permissions >> std::hex >> offset >> device >> std::dec >> inode;
    std::string path;
    std::getline(fields >> std::ws, path);
    if (path == "[stack]" || path == "[heap]") path.clear();  // the monitor's own
    auto it = regions.upper_bound(start);
    if (it != regions.begin()) --it;
    for (; it != regions.end() && it->first < end; ++it) {
      const std::uint64_t from = std::max(start, it->first);
      const std::uint64_t to = std::min(end, it->second.end);
      if (from >= to) continue;
      std::string name = path;
      if (name.empty() && from >= stack.start && to <= stack.end) name = "[stack]";
      if (name.empty() && from >= space.break_start() &&
          it->first <= space.break_start() + (1ull << 40) &&
          from < static_cast<std::uint64_t>(space.Brk(0))) {
        name = "[heap]";
      }
      std::string entry =
          fmt::format("{:x}-{:x} {} {:08x} {} {}", from, to, permissions,
                      inode != 0 || offset != 0 ? offset + (from - start) : 0, device, inode);
      if (!name.empty()) {
        if (entry.size() < 72) entry.append(72 - entry.size(), ' ');
        entry += " " + name;
      }
      out << entry << '\n';
    }
  }
  return out.str();
}

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// KVM keeps a thread of its own in the process: the kernel's counts are not the program's.
std::string StatusText(Process& process, const std::string& path) {
  std::string text = ReadWhole(path);
  const std::string_view key = "\nThreads:\t";
  if (const std::size_t at = text.find(key); at != std::string::npos) {
    const std::size_t start = at + key.size();
    text.replace(start, text.find('\n', start) - start, std::to_string(process.LiveThreads()));
  }
  return text;
}

std::string StatText(Process& process, const std::string& path) {
  std::string text = ReadWhole(path);
  // Fields are separated by blanks; the second, in parentheses, may hold any. num_threads is the
  // 20th (proc(5)).
  std::size_t at = text.rfind(')');
  for (int field = 2; field < 20 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  if (at != std::string::npos) {
    text.replace(at + 1, text.find(' ', at + 1) - at - 1, std::to_string(process.LiveThreads()));
  }
  return text;
}

}  // namespace

int OpenSnapshot(Process& process, OwnProcFile file, const std::string& path, bool close_on_exec) {
  const std::string text = file == OwnProcFile::kMaps     ? MapsText(process, path)
                           : file == OwnProcFile::kStatus ? StatusText(process, path)
                                                          : StatText(process, path);
  const int fd = memfd_create("proc", close_on_exec ? MFD_CLOEXEC : 0);
  if (fd < 0) return -errno;
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      lseek(fd, 0, SEEK_SET) != 0) {
    close(fd);
    return -ENOMEM;
  }
  return fd;
}

long FilterOwnDirectory(Process& process, int fd, std::uint64_t buffer, long bytes) {
  const std::string target = LinkTarget(DescriptorLink(fd));
  const auto directory = InOwnProc(target);
  if (!directory) return bytes;
  const bool tasks = *directory == "task";
  if (!tasks && !directory->ends_with("fd") && !directory->ends_with("fdinfo")) return bytes;
  std::string entries(static_cast<std::size_t>(bytes), '\0');
  if (!ReadGuest(buffer, entries.data(), entries.size())) return bytes;
  std::string kept;
  for (std::size_t at = 0; at + offsetof(dirent64, d_name) < entries.size();) {
    std::uint16_t size = 0;
    std::memcpy(&size, entries.data() + at + offsetof(dirent64, d_reclen), sizeof size);
    if (size == 0 || at + size > entries.size()) break;
    const char* name = entries.data() + at + offsetof(dirent64, d_name);
    int number = -1;
    const auto parsed = std::from_chars(name, name + std::strlen(name), number);
    const bool numeric = parsed.ec == std::errc() && *parsed.ptr == 0;
    const bool ours = numeric && (tasks ? number != getpid() && !process.IsGuestTid(number)
                                        : IsMonitorDescriptor(number));
    if (!ours) kept.append(entries, at, size);
    at += size;
  }
  if (kept.size() == entries.size() || kept.empty()) return kept.empty() ? 0 : bytes;
  return WriteGuest(buffer, kept.data(), kept.size()) ? static_cast<long>(kept.size()) : bytes;
}

pid_t TracerOfThisThread() {
  const std::string text = ReadWhole("/proc/thread-self/status");
  constexpr std::string_view kKey = "\nTracerPid:\t";
  const std::size_t at = text.find(kKey);
  return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + kKey.size());
}

}  // namespace trapline
