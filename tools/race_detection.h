// Race detection while the program runs: feeds a detector with the execution's events and reports
// what it finds.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "detector/detector.h"
#include "tools/execution_events.h"
#include "tools/race_json_file.h"
#include "tools/race_report.h"
#include "tools/shared_memory.h"

namespace trapline {

struct RaceDetectionOptions {
  std::string detector = "fasttrack";
  std::string json_path;       // empty: none
  int json_descriptor = -1;    // inherited through execve
  int shared_descriptor = -1;  // SharedMemoryTable's; likewise
  std::string suppressions;    // path; empty: none
  int error_exit_code = -1;    // status to end with when races were found; -1: the program's own
  bool verbose = false;        // a summary even if nothing was found
  std::string program;         // as the user named it
};
// For a monitor that execve starts.
void to_json(nlohmann::json& json, const RaceDetectionOptions& options);
void from_json(const nlohmann::json& json, RaceDetectionOptions& options);

class RaceDetection : public EventSink {
 public:
  // Of the options in EventSink::OnExecute.
  static constexpr const char* kOptionsName = "detection";

  // `events` must outlive this object. Throws std::invalid_argument for an unknown detector or
  // suppressions that cannot be read.
  RaceDetection(const RaceDetectionOptions& options, ExecutionEvents& events);

  // Creates the JSON file in the first process, else adopts the inherited one. The error says what
  // failed.
  Status OpenJson(bool first_process);

  bool TakesRepeats() const override { return detector_->TakesRepeats(); }
  bool TakesLateReleases() const override { return detector_->TakesLateReleases(); }
  void OnEvents(std::span<const Event> events) override;
  bool MayRunBeside() const override { return true; }
  void Report() override;
  void OnForkedChild() override;
  void OnSharedMemoryEnds(std::uint64_t start, std::uint64_t end) override;
  void OnExecute(nlohmann::json& options, std::vector<int>& descriptors) override;
  int OnExit(int status) override;

 private:
  void MakeDetector();
  bool IsLinkedLibrary(const ReportAccess& access);
  void Report(const Race& race);
  ReportAccess Describe(const Access& access);
  ReportThread Describe(ThreadId thread);
  ReportLocation Locate(const Race& race);
  StackLocation LocateOnStack(ThreadId owner, const Race& race);
  void AppendJson();  // the newest race
  void WriteJson();   // everything

  const RaceDetectionOptions options_;
  ExecutionEvents& events_;
  RaceReports reports_;
  RaceJsonFile json_;
  bool json_complete_ = true;  // all that was found is in it
  SharedMemoryTable shared_memory_;
  std::vector<SharedMemoryUse> shared_uses_;  // what it has told

  std::unique_ptr<Detector> detector_;
  std::uint64_t index_ = 0;
  std::size_t races_seen_ = 0;
  int process_ = 0;
};

}  // namespace trapline
