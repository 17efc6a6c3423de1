// A race in source terms, and its two forms: text for people, JSON for programs (docs/report.md).
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "symbols/symbolizer.h"
#include "tools/race_report.h"

namespace trapline {

// One function of a stack; inlined ones are frames of their own.
struct ResolvedFrame {
  SourceFrame source;
  std::string module;         // path; empty: in none
  std::uint64_t offset = 0;   // in the module's file
  std::uint64_t address = 0;  // the pc as the stack has it
};
using ResolvedStack = std::vector<ResolvedFrame>;  // innermost first

struct ResolvedThread {
  ReportThread thread;
  ResolvedStack created;
};

struct ResolvedLock {
  ReportLock lock;
  ResolvedStack acquired;
};

struct ResolvedAccess {
  ReportAccess access;
  ResolvedThread thread;
  ResolvedStack stack;
  std::vector<ResolvedLock> locks;
};

struct ResolvedLocation {
  std::string kind;  // "global", "heap", "stack", "tls", "mapping", "unknown"
  std::uint64_t address = 0;
  // The variable (global, stack, tls), as far as known.
  std::string symbol, expression, type, file;
  int line = 0;
  std::string function;      // stack: of the variable
  std::string module;        // global, tls: path
  std::uint64_t offset = 0;  // from the start of symbol, block, file; without any, of the module
  std::uint64_t size = 0;    // of symbol or block; 0: not known
  std::uint64_t start = 0;   // heap: of the block
  bool freed = false;        // heap
  std::string path;          // mapping: file; empty: anonymous
  std::optional<ResolvedThread> owner;         // stack, tls: whose
  std::optional<ResolvedThread> allocated_by;  // heap
  std::optional<ResolvedThread> freed_by;
  ResolvedStack allocation, release;  // heap
};

struct ResolvedRace {
  std::string kind;
  std::array<ResolvedAccess, 2> accesses;  // [1] the later one
  ResolvedLocation location;
  int process = 0;
};

// Both end in a newline / have no occurrence count: that is added when it is final.
std::string RaceText(const ResolvedRace& race);
nlohmann::json RaceJson(const ResolvedRace& race);

}  // namespace trapline
