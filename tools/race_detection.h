// Race detection while the program runs: the observer that feeds a detector and reports what it
// finds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "detector/detector.h"
#include "hypervisor/observer.h"
#include "symbols/modules.h"
#include "symbols/symbolizer.h"
#include "symbols/unwinder.h"
#include "tools/race_json_file.h"
#include "tools/race_report.h"

namespace trapline {

struct RaceDetectionOptions {
  std::string detector = "fasttrack";
  std::string json_path;     // empty: none
  int json_descriptor = -1;  // inherited through execve
  std::string suppressions;  // path; empty: none
  int error_exit_code = -1;  // status to end with when races were found; -1: the program's own
  bool verbose = false;      // a summary even if nothing was found
  std::string program;       // as the user named it

  // One string, for a monitor that execve starts (RunOptions::observer_options).
  std::string Encode() const;
  static RaceDetectionOptions Decode(const std::string& text);
};

class RaceDetection : public ExecutionObserver {
 public:
  // `is_untracked`: whether a module's code does not count. `json` is adopted or created by the
  // caller. Throws std::invalid_argument for an unknown detector or suppressions that cannot be
  // read.
  RaceDetection(const RaceDetectionOptions& options,
                std::function<bool(const std::string& path)> is_untracked);

  // Creates the JSON file in the first process. The error says what failed.
  Status OpenJson(bool first_process);
  int json_descriptor() const { return json_.descriptor(); }

  void SetRuntimeCode(const std::function<bool(std::uint64_t address)>& is_runtime) override {
    is_runtime_code_ = is_runtime;
  }
  void OnStart(pid_t tid) override;
  void OnAccess(ThreadId thread, EventKind kind, std::uint64_t address, std::uint64_t size,
                const RegisterFile& registers, bool in_runtime, std::uint64_t ip) override;
  void OnRuntimeEvent(ThreadId thread, const agent::QueuedEvent& event) override;
  void OnEdge(ThreadId thread, EventKind kind, std::uint64_t key) override;
  void OnThreadStart(ThreadId parent, ThreadId child, const RegisterFile& parent_registers,
                     std::uint64_t stack_start, std::uint64_t stack_end,
                     std::uint64_t thread_pointer) override;
  void OnThreadRuns(ThreadId thread, pid_t tid) override;
  void OnThreadEnd(ThreadId thread) override;
  void OnFreshMemory(ThreadId thread, std::uint64_t start, std::uint64_t end) override;
  void OnMoved(ThreadId thread, std::uint64_t from, std::uint64_t to,
               std::uint64_t length) override;
  void OnQuiet(ThreadId thread) override;
  void OnFork(ThreadId thread, pid_t tid) override;
  int OnExit(int status) override;
  bool IsAtomic(std::uint64_t ip, std::uint64_t address) override;

 private:
  struct HeldLock {
    std::uint64_t address = 0;
    std::uint64_t kind = 0;  // trapline_lock_kind
    bool shared = false;
    std::uint64_t ip = 0;
    friend bool operator==(const HeldLock&, const HeldLock&) = default;
  };
  struct Thread {
    pid_t tid = 0;
    ThreadId parent = 0;
    std::string name;
    std::vector<std::uint64_t> creation_stack;
    std::uint64_t stack_start = 0, stack_end = 0, thread_pointer = 0;
    std::vector<HeldLock> locks;
    unsigned ignored_reads = 0, ignored_writes = 0, ignored_synchronisation = 0;
  };
  // What a report says of an access beyond the access itself; kept under Event::stack.
  struct Context {
    std::vector<std::uint64_t> stack;
    std::vector<HeldLock> locks;
    std::uint32_t generation = 0;
    friend bool operator==(const Context&, const Context&) = default;
  };
  struct Block {
    std::uint64_t size = 0;
    std::uint64_t ip = 0;
    ThreadId thread = 0;
    bool freed = false;
    std::uint64_t free_ip = 0;
    ThreadId freed_by = 0;
  };

  void MakeDetector();
  Thread& ThreadOf(ThreadId thread);
  void Feed(const Event& event);
  void ClearHistory(ThreadId thread, std::uint64_t start, std::uint64_t end);
  std::uint32_t Intern(Context context);
  std::vector<std::uint64_t> Unwind(const RegisterFile& registers);
  void Report(const Race& race);
  ReportAccess Describe(const Access& access);
  ReportThread Describe(ThreadId thread);
  ReportLocation Locate(std::uint64_t address, std::uint64_t size);
  void OnAllocate(ThreadId thread, const agent::QueuedEvent& event);
  void OnFree(ThreadId thread, const agent::QueuedEvent& event);
  bool IsBenign(std::uint64_t address, std::uint64_t size) const;
  bool IsUntracked(std::uint64_t ip);
  void WriteJson();

  const RaceDetectionOptions options_;
  const std::function<bool(const std::string&)> is_untracked_;
  std::function<bool(std::uint64_t)> is_runtime_code_;  // empty: none
  Modules modules_;
  Unwinder unwinder_;
  Symbolizer symbolizer_;
  RaceReports reports_;
  RaceJsonFile json_;
  MemoryReader memory_ = OwnMemory();

  std::unique_ptr<Detector> detector_;
  std::uint64_t index_ = 0;
  std::size_t races_seen_ = 0;
  std::map<ThreadId, Thread> threads_;
  std::vector<Context> contexts_;                                    // [0]: none
  std::unordered_multimap<std::size_t, std::uint32_t> context_ids_;  // hash -> index
  std::map<std::uint64_t, Block> blocks_;                            // live and lately freed ones
  std::map<std::uint64_t, std::uint64_t> benign_;                    // start -> end
  int process_ = 0;
  bool ended_ = false;
};

}  // namespace trapline
