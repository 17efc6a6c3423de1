// The file behind `--json`: one for all processes of a run, each of which adds its races
// (docs/report.md).
#pragma once

#include <functional>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "replay/status.h"

namespace trapline {

// Works on one descriptor, opened at the start, so that a program that changes its root directory
// or its user can still report. Processes exclude each other by a record lock (fcntl(2)), which
// unlike flock(2) also tells processes apart that inherited the descriptor. Thread-safe.
class RaceJsonFile {
 public:
  RaceJsonFile() = default;
  RaceJsonFile(const RaceJsonFile&) = delete;
  RaceJsonFile& operator=(const RaceJsonFile&) = delete;
  ~RaceJsonFile();

  // In the first process: creates or empties `path`, which must be a regular file, and writes the
  // form without races. The descriptor is not closed by execve unless the caller says so.
  Status Create(const std::string& path, const std::string& program);

  // In a process that inherited the descriptor through execve; `path` for messages. Takes
  // ownership.
  void Adopt(int descriptor, const std::string& path);

  // Puts RaceReports::ToJson() into the file, in place of what the same process's same program put
  // there before. The error says what failed; the file is then as it was if that is possible.
  Status Merge(const nlohmann::json& process);
  // Adds RaceReports::NewestToJson(): its race after all that are there, and its counts in place of
  // the process's. In a time that does not grow with the number of races. Otherwise as Merge.
  Status Append(const nlohmann::json& process);

  // -1: no file.
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

 private:
  // With the file locked: `change` returns what failed, null if nothing did.
  Status Change(const nlohmann::json& process, const std::function<const char*()>& change);
  const char* MergeLocked(const nlohmann::json& process);
  const char* AppendLocked(const nlohmann::json& process);

  std::mutex mutex_;
  int descriptor_ = -1;
  std::string path_;
};

}  // namespace trapline
