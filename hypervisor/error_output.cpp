#include "hypervisor/error_output.h"

#include <sys/stat.h>
#include <unistd.h>

#include "hypervisor/kvm.h"

namespace trapline {
namespace {

FileDescriptor kept_output;
struct stat original;

bool IsOriginal() {
  struct stat now {};
  return fstat(STDERR_FILENO, &now) == 0 && now.st_dev == original.st_dev &&
         now.st_ino == original.st_ino;
}

}  // namespace

void KeepErrorOutput() {
  if (fstat(STDERR_FILENO, &original) != 0) return;
  if (!S_ISREG(original.st_mode) && !S_ISCHR(original.st_mode)) return;
  kept_output = OpenOutOfTheWay([] { return dup(STDERR_FILENO); });
}

void WriteError(const std::string& text) {
  const int descriptor = kept_output.valid() && !IsOriginal() ? kept_output.get() : STDERR_FILENO;
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(descriptor, text.data() + done, text.size() - done);
    if (written <= 0) return;
    done += static_cast<std::size_t>(written);
  }
}

}  // namespace trapline
