#include "symbols/source_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>

namespace trapline {

bool IsSystemFile(std::string_view path) {
  for (const std::string_view start :
       {"/usr/include/x86_64-linux-gnu/", "/usr/include/bits/", "/usr/include/sys/",
        "/usr/include/linux/", "/usr/include/asm"}) {
    if (path.starts_with(start)) return true;
  }
  constexpr std::string_view kHeaders = "/usr/include/";
  // LLVM's C++ library lies in a directory of the compiler's own.
  return path.find("/include/c++/") != std::string_view::npos ||
         path.find("/lib/gcc/") != std::string_view::npos ||
         path.find("/lib/clang/") != std::string_view::npos ||
         (path.starts_with(kHeaders) && path.find('/', kHeaders.size()) == std::string_view::npos);
}

bool IsRegularFile(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

std::string NormalPath(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

std::vector<std::string> WithThoseAbove(const std::vector<std::string>& directories) {
  std::vector<std::string> all;
  std::set<std::string> known;
  for (const std::string& directory : directories) {
    std::filesystem::path path = NormalPath(directory);
    for (; path.has_relative_path() && !IsSystemFile(path.string() + "/");
         path = path.parent_path()) {
      if (!known.insert(path.string()).second) break;  // with those above it
      all.push_back(path.string());
    }
  }
  return all;
}

bool ReadSource(const std::string& path, std::size_t most, std::time_t built, std::string& text) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status = {};
  bool whole = descriptor >= 0 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
               static_cast<std::size_t>(status.st_size) <= most && status.st_mtime <= built;
  if (whole) {
    text.resize(static_cast<std::size_t>(status.st_size));
    std::size_t length = 0;
    while (length < text.size()) {
      const ssize_t got = read(descriptor, text.data() + length, text.size() - length);
      if (got <= 0) break;
      length += static_cast<std::size_t>(got);
    }
    whole = length == text.size();
  }
  if (descriptor >= 0) close(descriptor);
  return whole;
}

}  // namespace trapline
