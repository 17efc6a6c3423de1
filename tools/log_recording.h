// Recording while the program runs: writes the execution's events into a trap log
// (docs/trap-log.md), through shared memory that a process of its own drains.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "replay/log_recorder.h"
#include "tools/execution_events.h"
#include "tools/first_access_filter.h"

namespace trapline {

// Which accesses a log holds. What FastTrack has use for: those that it is told of while a program
// runs, where repeats that nobody could race with are told late or never.
enum class LogFilter : std::uint8_t { kAll, kFirst, kFastTrack };
NLOHMANN_JSON_SERIALIZE_ENUM(LogFilter, {{LogFilter::kAll, "all"},
                                         {LogFilter::kFirst, "first"},
                                         {LogFilter::kFastTrack, "fasttrack"}})

struct LogRecordingOptions {
  std::string path;  // absolute
  LogFilter filter = LogFilter::kAll;
  // Handed on through execve: what the process `owner` has recorded so far.
  pid_t owner = 0;      // 0: nobody yet
  bool initial = true;  // `owner` is the process that `trapline run` started
  unsigned logs = 0;    // that hold something
  int control = -1;     // LogRecorder::control() of the program before; -1: it has no log
};
void to_json(nlohmann::json& json, const LogRecordingOptions& options);
void from_json(const nlohmann::json& json, LogRecordingOptions& options);

// One program's recording. The first program of `trapline run` writes to `path`, every other one to
// `path`.PID (a second one of the same process to `path`.PID.2 and so on). Nothing is recorded
// before there is a second thread: all that was done until then happens before everything else.
class LogRecording : public EventSink {
 public:
  // Of the options in EventSink::OnExecute.
  static constexpr const char* kOptionsName = "log";

  // `events` must outlive this object. `metadata` describes the program.
  LogRecording(LogRecordingOptions options, ExecutionEvents& events, LogMetadata metadata);

  // Before the program runs: ends the log of the program before, if execve has replaced it. Where
  // the log is `path`, starts it, so that the user hears at once if that cannot be.
  Status Open();
  // For the metadata; known once the virtual machine is there.
  void SetHostKind(const std::string& kind);

  bool TakesRepeats() const override { return options_.filter == LogFilter::kFastTrack; }
  void OnEvents(std::span<const Event> events) override;
  void OnForkedChild() override;
  void OnExecute(nlohmann::json& options, std::vector<int>& descriptors) override;
  void OnExecuteFailed() override;
  int OnExit(int status) override;

 private:
  void OnEvent(const Event& event);
  // Appends a run of accesses at the beginning of `events`, which are not empty; returns how many
  // are dealt with.
  std::size_t AppendAccesses(std::span<const Event> events);
  enum class State { kWaiting, kRecording, kOff };

  std::string Path() const;
  Status Start();
  void Begin(ThreadId thread);
  void Append(const Event& event);
  // The thread's stream with room for that many bytes; null: the events, so many, are lost.
  ThreadLog* Room(ThreadId thread, std::uint32_t bytes, std::uint32_t events);
  std::uint32_t StackOf(const Event& event);
  void DescribeModules();

  LogRecordingOptions options_;
  ExecutionEvents& events_;
  LogMetadata metadata_;
  State state_ = State::kWaiting;
  std::unique_ptr<LogRecorder> recorder_;  // null: not started
  std::map<ThreadId, std::unique_ptr<ThreadLog>> logs_;
  std::unordered_map<ThreadId, ThreadLog::Position> ended_;
  ThreadLog* last_log_ = nullptr;  // of last_thread_
  ThreadId last_thread_ = 0;
  // The log's numbers of call stacks, by ExecutionEvents' number of the stack, and of the context.
  static constexpr std::uint32_t kUnknownStack = ~0U;
  std::vector<std::uint32_t> stacks_, context_stacks_;
  bool first_accesses_;  // those that filter_ passes
  FirstAccessFilter filter_;
  std::uint32_t generation_ = 0;  // of the modules described so far
  std::vector<bool> described_;   // by module index
};

}  // namespace trapline
