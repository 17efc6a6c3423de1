#include "hypervisor/error_output.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "hypervisor/clock.h"
#include "hypervisor/kvm.h"
#include "hypervisor/signal_held_back.h"

namespace trapline {
namespace {

FileDescriptor kept_output;
struct stat original;
bool was_closed = false;

bool IsOriginal() {
  struct stat now {};
  return fstat(STDERR_FILENO, &now) == 0 && now.st_dev == original.st_dev &&
         now.st_ino == original.st_ino;
}

ssize_t Write(int descriptor, const char* data, std::size_t size) {
  const SignalHeldBack signal(SIGPIPE, SignalHeldBack::Others::kCome);
  return write(descriptor, data, size);
}

// A signal has come while a pipe was full. What it is for must not wait long for whoever reads.
bool AwaitRoom(int descriptor) {
  constexpr std::uint64_t kLongestWait = 1'000'000'000;  // ns
  const std::uint64_t end = Nanoseconds(CLOCK_MONOTONIC) + kLongestWait;
  for (std::uint64_t now = end - kLongestWait; now < end; now = Nanoseconds(CLOCK_MONOTONIC)) {
    pollfd room{descriptor, POLLOUT, 0};
    if (poll(&room, 1, static_cast<int>((end - now) / 1'000'000)) >= 0) return room.revents != 0;
  }
  return false;
}

}  // namespace

void KeepErrorOutput() {
  was_closed = fstat(STDERR_FILENO, &original) != 0;
  if (was_closed) return;
  if (!S_ISREG(original.st_mode) && !S_ISCHR(original.st_mode)) return;
  kept_output = OpenOutOfTheWay([] { return dup(STDERR_FILENO); });
}

void WriteError(const std::string& text) {
  if (was_closed) return;
  const int descriptor = kept_output.valid() && !IsOriginal() ? kept_output.get() : STDERR_FILENO;
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = Write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR && AwaitRoom(descriptor)) continue;
    if (written <= 0) return;
    done += static_cast<std::size_t>(written);
  }
}

}  // namespace trapline
