#include "replay/log_recorder.h"

#include <fmt/format.h>
#include <sched.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>

namespace trapline {
namespace {

// What an attended drain says (log_command.cpp); anything else is an error message.
constexpr std::string_view kReady = "ready\n", kDone = "done\n";

std::string NewSegmentName() {
  static std::atomic<int> count{0};
  return fmt::format("trapline-{}-{}", getpid(), count.fetch_add(1));
}

// What the drain says, up to the end of a line if `one_line`, else until it ends.
std::string Hear(int control, bool one_line) {
  std::string text;
  for (;;) {
    char letter = 0;
    const ssize_t got = read(control, &letter, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text += letter;
    if (one_line && letter == '\n') return text;
  }
}

std::string WithoutLineEnd(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

struct Spawn {
  const std::vector<char*>& arguments;
  int socket;
  int error = 0;
};

// Runs in a process between ours and the drain, on our memory, while our thread waits. It ends at
// once, so that the drain is nobody's child: a program that waits for its children must not meet
// it, nor get a signal when it ends.
int SpawnDrain(void* argument) {
  auto& spawn = *static_cast<Spawn*>(argument);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_adddup2(&files, spawn.socket, standard);
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  char* environment[] = {nullptr};
  pid_t drain = 0;
  spawn.error = posix_spawn(&drain, spawn.arguments[0], &files, &attributes, spawn.arguments.data(),
                            environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  _exit(0);
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
    if (Status status = StartProcess(path); !status.ok()) {
      LogSegment::Remove(segment_.name());
      return status;
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

Status LogRecorder::StartProcess(const std::string& path) {
  std::vector<std::string> words = options_.drain_command;
  words.push_back(segment_.name());
  words.push_back(path);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const auto failed = [&](int error) {
    return Status::Error(fmt::format("cannot start {} to write the trap log {}: {}", words[0], path,
                                     std::strerror(error)));
  };
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return failed(errno);
  Spawn spawn{arguments, ends[1]};
  {
    constexpr std::size_t kStackBytes = 64 << 10;
    const std::unique_ptr<char[]> stack(new char[kStackBytes]);
    char* top = stack.get() + kStackBytes;
    top -= reinterpret_cast<std::uintptr_t>(top) % 16;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    // Without a signal number in the flags: this thread's process hears nothing of its end.
    const int between = clone(&SpawnDrain, top, CLONE_VM | CLONE_VFORK, &spawn);
    if (between < 0) spawn.error = errno;
    if (between > 0) {
      while (waitpid(between, nullptr, __WCLONE) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  close(ends[1]);
  if (spawn.error != 0) {
    close(ends[0]);
    return failed(spawn.error);
  }
  const std::string answer = Hear(ends[0], true);
  if (answer != kReady) {
    close(ends[0]);
    return answer.empty() ? failed(ECHILD) : Status::Error(WithoutLineEnd(answer));
  }
  control_ = options_.move_descriptor ? options_.move_descriptor(ends[0]) : ends[0];
  return {};
}

void LogRecorder::Abandon() {
  if (control_ >= 0) close(control_);
  control_ = -1;
  segment_ = LogSegment();
  started_ = false;
}

bool LogRecorder::WaitForRoom(ThreadLog& log, std::uint32_t bytes, std::uint32_t events) {
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
  log.Lose(events);
  return false;
}

Status LogRecorder::WaitForProcess() {
  const std::string answer = Hear(control_, false);
  close(control_);
  control_ = -1;
  if (answer == kDone) return {};
  if (!answer.empty()) return Status::Error(WithoutLineEnd(answer));
  // What a dead drain has not written is still in the segment: keep it for another one.
  return Status::Error(
      fmt::format("the process that writes the trap log {0} was killed; `trapline log drain {1} "
                  "{0}` saves what is still in memory",
                  path_, segment_.name()));
}

Status LogRecorder::Await(int control) {
  const char word = 'x';
  static_cast<void>(send(control, &word, 1, MSG_NOSIGNAL));
  const std::string answer = Hear(control, false);
  close(control);
  if (answer == kDone) return {};
  return Status::Error(answer.empty() ? "the process that writes the trap log was killed"
                                      : WithoutLineEnd(answer));
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
    if (!status.ok() && segment_.header().drain_errno.load() == 0) return status;
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
