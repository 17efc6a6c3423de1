// A recording as the workload's process sees it: the segment, the drain (a thread or a process),
// and what to do when the drain cannot keep up.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "replay/log_drain.h"
#include "replay/log_segment.h"
#include "replay/status.h"

namespace trapline {

// Back-pressure: all of the segment's memory waits for the drain.
enum class WhenFull {
  kWait,  // the thread waits, as long as a drain is alive; without one it drops
  kDrop,  // the event is dropped and counted, and the log says from where on it is incomplete
};

struct RecorderOptions {
  SegmentOptions segment;
  WhenFull when_full = WhenFull::kWait;
  // How long the drain may show no sign of life before it is taken for dead.
  std::chrono::milliseconds drain_timeout{2000};
  // Empty: the drain is a thread. Else the program to start with the segment's name and the log's
  // path as further arguments, e.g. {"/usr/bin/trapline-replay", "log", "drain", "--attended"}. It
  // runs detached, in a session of its own, is nobody's child, has an empty environment, and of all
  // descriptors only one end of a socket, as standard input, output and error.
  std::vector<std::string> drain_command;
  // Moves our end of that socket to where it is out of the way; returns the new number. May be
  // empty.
  std::function<int(int descriptor)> move_descriptor;
};

// Start and Stop are called by one thread; MakeRoom by any, each with its own ThreadLog.
class LogRecorder {
 public:
  LogRecorder() = default;
  LogRecorder(const LogRecorder&) = delete;
  LogRecorder& operator=(const LogRecorder&) = delete;
  ~LogRecorder();

  Status Start(const std::string& path, const LogMetadata& metadata,
               const RecorderOptions& options);

  // ThreadLog::Reserve, with waiting as the options say. False: the `events` that were to go there
  // must be dropped, and have been counted as lost.
  bool MakeRoom(ThreadLog& log, std::uint32_t bytes = kMaxEventRecordBytes,
                std::uint32_t events = 1) {
    return log.Reserve(bytes) || WaitForRoom(log, bytes, events);
  }

  // Ends the recording: every ThreadLog must be finished. Waits for the drain and says how it went.
  Status Stop();

  // In a forked child: the recording is the parent's alone. Start may be called again.
  void Abandon();

  // Our end of the drain process's socket; -1 if there is none. A program that this process runs by
  // execve may inherit it and call Await.
  int control() const { return control_; }
  // Another program is about to run in this process, or is not after all: execve has failed.
  void SetExecuting(bool executing) { segment_.header().executing.store(executing ? 1 : 0); }
  // Tells the drain process at the other end of `control` that its producer has run another
  // program, waits for it and says how it went. Closes `control`.
  static Status Await(int control);

  const LogSegment& segment() const { return segment_; }
  std::uint64_t lost_events() const { return segment_.header().lost_events.load(); }

 private:
  bool WaitForRoom(ThreadLog& log, std::uint32_t bytes, std::uint32_t events);
  Status StartProcess(const std::string& path);
  Status WaitForProcess();

  RecorderOptions options_;
  std::string path_;
  LogSegment segment_;
  std::thread drain_thread_;
  std::atomic<bool> stop_{false};
  Status drain_status_;
  int control_ = -1;
  bool started_ = false;
};

}  // namespace trapline
