// The STD text format that offline trace analysers read: one event a line, "T0|w(V1)|12" for thread
// T0 writing variable V1 at program location 12.
//
// Operations: r, w (variable), acq, rel (lock), fork, join (thread), begin, end (block; accepted
// and without meaning for races). Locations are decimal numbers. Empty lines and lines that start
// with '#' are skipped.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "detector/event.h"

namespace trapline {

// Reads a trace event by event. Names may be any text without '|', '(' and ')'. Threads are
// numbered in the order of their first appearance; each variable becomes 8 bytes of memory of its
// own, each lock an address of its own; the location becomes the instruction's address. Not
// thread-safe.
class StdReader {
 public:
  enum class Result : std::uint8_t { kEvent, kEnd, kError };

  // `in` must outlive the reader.
  explicit StdReader(std::istream* in) : in_(in) {}

  // kEvent: *event is the next one. kEnd: no more. kError: a line is malformed or reading failed;
  // error() says where and why, and the reader stays in this state.
  Result Next(Event* event);

  // "line 12: ..."; empty unless Next has returned kError.
  const std::string& error() const { return error_; }

  // The name of a thread in the input, or an empty string.
  std::string_view ThreadName(ThreadId thread) const;

 private:
  using Names = std::unordered_map<std::string, std::uint64_t>;

  bool Parse(std::string_view line, Event* event, bool* skip);
  bool Fail(const std::string& why);
  bool ThreadOf(std::string_view name, ThreadId* thread);
  static std::uint64_t NumberOf(std::string_view name, Names* names);

  std::istream* in_;
  std::uint64_t line_ = 0;
  std::string error_;
  Names threads_;
  std::vector<std::string> thread_names_;
  Names variables_;
  Names locks_;
};

// Writes a trace in two passes: Scan every event, then Write every event in the same order.
//
// Variables are the pieces of memory that all accesses treat alike (whole words, halves of words,
// or bytes), so that two accesses share a variable exactly when their bytes overlap. The format
// knows only mutexes, so
// - a reader-writer lock becomes one mutex for each of its reading threads: a reader takes its own,
// a writer all;
// - signal/wait keys, barriers and atomics become short critical sections of a mutex of their own.
// That may order
//   more than the program did (a race may be hidden), never less.
// Cleared memory becomes a new variable, and so does the destination of a copied history, which the
// format cannot say. Scopes, tracking and sampling events have no counterpart and are left out. Not
// thread-safe.
class StdWriter {
 public:
  // Locations are printed as they are, or (some analysers keep them in 32 bits) as the numbers 1,
  // 2, 3, ... in order of appearance, which Locations() explains; 0 stays 0.
  explicit StdWriter(bool number_locations = false) : number_locations_(number_locations) {}

  void Scan(const Event& event);

  // Appends the event's lines, each with a newline, to *out.
  void Write(const Event& event, std::string* out);

  // Instruction addresses by number, from number 1 at index 0.
  const std::vector<std::uint64_t>& Locations() const { return locations_; }

 private:
  enum Layout : std::uint8_t { kWhole, kHalves, kBytes };
  struct Word {
    Layout layout = kWhole;
    std::uint32_t generation[8] = {};  // of each byte
  };

  template <class Visit>
  void ForEachVariable(std::uint64_t address, std::uint64_t size, Visit&& visit);
  void Cut(std::uint64_t address, std::uint64_t size);
  void Renew(std::uint64_t address, std::uint64_t size);
  std::string Location(std::uint64_t ip);
  void Line(const Event& event, std::string_view operation, const std::string& operand,
            std::string* out);
  void Accesses(const Event& event, std::string* out);
  void Section(const Event& event, const std::string& lock, std::string* out);

  bool number_locations_;
  bool copies_ = false;  // whether any history is copied
  std::unordered_map<std::uint64_t, std::uint64_t> location_numbers_;
  std::vector<std::uint64_t> locations_;
  std::map<std::uint64_t, Word> words_;  // by address / 8
  std::map<std::uint64_t, std::vector<ThreadId>> readers_;
};

}  // namespace trapline
