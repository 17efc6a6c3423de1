// Data races as users see them: what detection hands over, and its text and JSON forms
// (docs/report.md).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "symbols/symbolizer.h"
#include "tools/suppressions.h"

namespace trapline {

// All members have defaults, so that any of them can be left out of a designated initialiser.
struct ReportThread {
  std::uint32_t id = 0;  // logical; 0 = the initial thread
  int tid = 0;           // the kernel's number
  std::string name = {};
  std::uint32_t parent = 0;  // logical id of the creator; of thread 0: 0
  // Where it was created: return addresses of the creator, innermost first; empty: not known.
  std::vector<std::uint64_t> creation_stack = {};
};

struct ReportLock {
  std::uint64_t address = 0;                          // 0: not kept
  std::string kind = {};                              // "mutex", "rwlock (shared)", "spinlock", ...
  std::vector<std::uint64_t> acquisition_stack = {};  // return addresses; empty: not known
};

enum class AccessOperation { kRead, kWrite, kAtomic };

struct ReportAccess {
  ReportThread thread = {};
  AccessOperation operation = AccessOperation::kRead;
  std::uint64_t size = 0;     // bytes
  std::uint64_t address = 0;  // of the first byte of the access
  // Innermost first. The first pc is the instruction itself, the others are return addresses, as
  // Unwinder::Unwind gives them.
  std::vector<std::uint64_t> stack = {};
  // An address inside the instruction or call that is to blame, if that is not the innermost one
  // outside hidden modules (the caller of a library's function); 0: it is. Two races between the
  // same two places are one.
  std::uint64_t place = 0;
  std::vector<ReportLock> locks = {};  // held at the access, in order of acquisition
  // Modules::generation() when the stack was taken; 0: the modules of now.
  std::uint32_t generation = 0;
};

// What the raced address is. `symbol` and the like are looked up here, not by the caller.
struct GlobalLocation {};
struct HeapLocation {
  std::uint64_t start = 0;
  std::uint64_t size = 0;                            // bytes, as asked for
  std::vector<std::uint64_t> allocation_stack = {};  // return addresses, innermost first
  std::optional<ReportThread> allocated_by = {};
  bool freed = false;
  std::vector<std::uint64_t> free_stack = {};
  std::optional<ReportThread> freed_by = {};
};
struct StackLocation {
  ReportThread thread = {};  // whose stack
  // That thread's frames, if they are live; empty: not known.
  std::vector<StackFrame> frames = {};
};
struct ThreadLocalLocation {
  ReportThread thread = {};          // whose
  std::uint64_t thread_pointer = 0;  // its FS base; 0: not known
};
struct MappingLocation {
  std::string path = {};     // empty: anonymous memory
  std::uint64_t offset = 0;  // of the address in the file, or from the mapping's start
};
struct UnknownLocation {};
using ReportLocation = std::variant<UnknownLocation, GlobalLocation, HeapLocation, StackLocation,
                                    ThreadLocalLocation, MappingLocation>;

struct RaceReport {
  // [0] the earlier, [1] the later one. Never two atomic ones, never two reads.
  std::array<ReportAccess, 2> accesses;
  ReportLocation location;
  int process = 0;                // pid
  std::uint64_t occurrences = 1;  // so often found
};

// "write-write", "read-write" (in either order), or "atomic-plain" as soon as one of the two is
// atomic.
std::string_view RaceKind(const RaceReport& report);

struct RaceReportOptions {
  // Modules (by file name, as a glob) whose frames are left out of printed stacks, unless nothing
  // else is there.
  std::vector<std::string> hidden_modules = {"libtrapline-preload.so*"};
  std::string program;  // path of the program, for the JSON form
  MemoryReader memory = OwnMemory();
};

// All races of one process. Thread-safe.
class RaceReports {
 public:
  // `symbolizer` must outlive this object.
  RaceReports(Symbolizer& symbolizer, Suppressions suppressions, RaceReportOptions options = {});
  RaceReports(const RaceReports&) = delete;
  RaceReports& operator=(const RaceReports&) = delete;
  ~RaceReports();

  // Takes a race in. Returns the text to print if it is the first of its unordered pair of places
  // (ReportAccess::place) and not suppressed; else nothing: it is counted.
  std::optional<std::string> Add(const RaceReport& report);

  // Another occurrence of a pair of places that Add knows, without the cost of a report. False if
  // it does not know it: then call Add. For accesses whose places are the first pcs of their
  // stacks.
  bool AddOccurrence(std::uint64_t earlier, std::uint64_t later);

  // How many were printed: different pairs of places, without those suppressed.
  std::size_t races() const;

  // The last line, e.g. "trapline: 2 races (3 occurrences)\n"; empty if there were none and not
  // `verbose`.
  std::string Summary(bool verbose) const;

  // This process's part of the JSON form, for RaceJsonFile::Merge.
  nlohmann::json ToJson() const;
  // The same with no race but the one that was printed last, for RaceJsonFile::Append.
  nlohmann::json NewestToJson() const;

  // In the child after a fork: its parent reports what was found so far.
  void Clear();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace trapline
