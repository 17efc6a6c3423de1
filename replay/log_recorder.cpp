#include "replay/log_recorder.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace trapline {
namespace {

std::string NewSegmentName() {
  static std::atomic<int> count{0};
  return fmt::format("trapline-{}-{}", getpid(), count.fetch_add(1));
}

}  // namespace

LogRecorder::~LogRecorder() {
  if (started_) static_cast<void>(Stop());
}

Status LogRecorder::Start(const std::string& path, const LogMetadata& metadata,
                          const RecorderOptions& options) {
  options_ = options;
  path_ = path;
  if (Status status = segment_.Create(NewSegmentName(), options.segment, metadata); !status.ok()) {
    return status;
  }
  if (!options.drain_command.empty()) {
    std::vector<std::string> words = options.drain_command;
    words.push_back(segment_.name());
    words.push_back(path);
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int error =
        posix_spawnp(&drain_pid_, arguments[0], nullptr, nullptr, arguments.data(), environ);
    if (error != 0) {
      drain_pid_ = -1;
      LogSegment::Remove(segment_.name());
      return Status::Error(fmt::format("cannot start {} to write the trap log: {}", arguments[0],
                                       std::strerror(error)));
    }
    started_ = true;
    return {};
  }
  auto drain = std::make_unique<LogDrain>(segment_);
  if (Status status = drain->Open(path); !status.ok()) {
    LogSegment::Remove(segment_.name());
    return status;
  }
  drain_thread_ =
      std::thread([this, drain = std::move(drain)] { drain_status_ = drain->Run(stop_); });
  started_ = true;
  return {};
}

bool LogRecorder::WaitForRoom(ThreadLog& log, std::uint32_t bytes) {
  constexpr auto kPause = std::chrono::microseconds(50);
  const std::atomic<std::uint64_t>& beats = segment_.header().drain_beats;
  std::uint64_t seen = beats.load();
  auto alive = std::chrono::steady_clock::now();
  while (options_.when_full == WhenFull::kWait) {
    std::this_thread::sleep_for(kPause);
    if (log.Reserve(bytes)) return true;
    const auto now = std::chrono::steady_clock::now();
    if (const std::uint64_t beat = beats.load(); beat != seen) {
      seen = beat;
      alive = now;
    } else if (now - alive > options_.drain_timeout) {
      break;
    }
    // Once events are lost and the drain is still dead, nobody waits for it again.
    if (lost_events() != 0 && now - alive > kPause * 4) break;
  }
  log.Lose();
  return false;
}

Status LogRecorder::WaitForProcess() const {
  int state = 0;
  while (waitpid(drain_pid_, &state, 0) < 0) {
    if (errno != EINTR) return Status::Error("the process that writes the trap log has vanished");
  }
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return {};
  const int error = segment_.header().drain_errno.load();
  return Status::Error(fmt::format(
      "the process that writes the trap log {} {}{}; `trapline log info` says what is in it", path_,
      WIFSIGNALED(state) ? fmt::format("was killed by signal {}", WTERMSIG(state)) : "failed",
      error != 0 ? fmt::format(" ({})", std::strerror(error)) : ""));
}

Status LogRecorder::Stop() {
  if (!started_) return {};
  started_ = false;
  segment_.header().closed.store(1);
  Status status;
  if (drain_thread_.joinable()) {
    stop_.store(true);
    drain_thread_.join();
    status = drain_status_;
  } else {
    status = WaitForProcess();
  }
  // What a dead drain has not written is still in the segment: keep it for another one.
  if (drain_pid_ >= 0 && !status.ok() && segment_.header().drain_errno.load() == 0) {
    return Status::Error(fmt::format("{}; `trapline log drain {} {}` saves what is still in memory",
                                     status.message(), segment_.name(), path_));
  }
  LogSegment::Remove(segment_.name());
  if (status.ok() && lost_events() != 0) {
    return Status::Error(fmt::format(
        "{} events did not find room in {} MiB of memory and are missing in {}; give the recording "
        "more memory or a faster disk",
        lost_events(), segment_.header().total_bytes >> 20, path_));
  }
  return status;
}

}  // namespace trapline
