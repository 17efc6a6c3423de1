// What a trap log says about itself: the program and the machine it was recorded on, as JSON
// objects that add to each other (a module loaded late comes in an object of its own).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "replay/log_format.h"
#include "replay/status.h"

namespace trapline {

// One loaded object file, so that program addresses can be resolved later and elsewhere.
struct LogModule {
  std::string path;
  std::string build_id;     // hexadecimal, lower case; empty = has none
  std::uint64_t begin = 0;  // [begin, end): program addresses it was loaded at
  std::uint64_t end = 0;
  std::uint64_t bias = 0;  // program address = address in the file's symbol table + bias
};

// A part of a recording: the events with first <= sequence number <= last, of all threads or of
// some.
struct LogPart {
  Sequence first = 0;
  Sequence last = kLastSequence;
  bool all_threads = true;
  std::vector<ThreadId> threads;  // ascending; used unless all_threads
};

struct LogMetadata {
  std::string program;
  std::vector<std::string> arguments;
  std::string host_kind;           // e.g. "kvm_pvm"; "none" for imported and generated logs
  std::string policy;              // e.g. "exact"
  std::string clock;               // what time_ns counts: "monotonic", or "none"
  std::string filter;              // which accesses were recorded: "all", "first", "fasttrack"
  std::vector<std::string> plain;  // places whose plain accesses are no atomic ones: --plain
  std::string started;             // wall clock, UTC, ISO 8601; informative
  std::vector<LogModule> modules;
  std::vector<LogPart> parts;     // what of the recording is here; empty: the log was never cut
  std::vector<ThreadId> threads;  // of the whole recording; only where there are parts

  // Whether EventKind::kEarlierRead and the like may be among the events.
  bool HasLateRepeats() const { return filter == "fasttrack"; }

  nlohmann::json ToJson() const;
  // Adds the object `text` to what is known. Unknown members are ignored; an error leaves this
  // unchanged.
  Status Add(std::string_view text);
};

}  // namespace trapline
