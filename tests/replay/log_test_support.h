// What the tests of the trap log share: random events, logs in a scratch directory.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "replay/log_index.h"
#include "replay/log_reader.h"
#include "replay/log_writer.h"

namespace trapline {

inline bool operator==(const Event& a, const Event& b) {
  return a.kind == b.kind && a.order == b.order && a.flags == b.flags && a.thread == b.thread &&
         a.address == b.address && a.size == b.size && a.ip == b.ip && a.aux == b.aux &&
         a.other == b.other && a.stack == b.stack;
}

// A number from the environment, for longer runs of the same test.
inline std::uint64_t TestCount(const char* variable, std::uint64_t normal) {
  const char* text = std::getenv(variable);
  return text == nullptr ? normal : std::strtoull(text, nullptr, 10);
}

// A directory that goes away with its contents.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "trapline-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Any event at all: nothing in it makes sense, every field takes small, large and repeated values.
class RandomEvents {
 public:
  RandomEvents(std::uint64_t seed, std::uint32_t threads) : random_(seed), threads_(threads) {}

  Event Next() {
    Event event{};
    event.kind = static_cast<EventKind>(Pick(kEventKinds));
    if (Pick(4) != 0) event.kind = static_cast<EventKind>(Pick(2));
    // Of later kinds the log does not hold it.
    if (event.kind < EventKind::kJoinBegin && Pick(8) == 0)
      event.order = static_cast<MemoryOrder>(Pick(5));
    event.thread = static_cast<ThreadId>(Pick(threads_));
    event.address = Number();
    event.size = Pick(3) == 0 ? Number() : std::uint64_t{1} << Pick(5);
    event.ip = Pick(3) == 0 ? Number() : 0x400000 + 4 * Pick(2000);
    if (Pick(10) == 0) event.aux = Number();
    if (Pick(10) == 0) event.other = static_cast<ThreadId>(Number());
    if (Pick(4) == 0) event.stack = static_cast<std::uint32_t>(Pick(20));
    if (IsAccess(event.kind) && Pick(3) == 0) {
      event.flags = kHasValue;
      event.aux = Number();
      if (event.size < 8) event.aux &= (std::uint64_t{1} << (8 * event.size)) - 1;
    }
    return event;
  }

  std::uint64_t Pick(std::uint64_t below) { return random_() % below; }

 private:
  // Of any length in bits.
  std::uint64_t Number() {
    const std::uint64_t bits = Pick(65);
    return bits == 0 ? 0 : random_() >> (64 - bits);
  }

  std::mt19937_64 random_;
  std::uint32_t threads_;
};

struct RecordedEvent {
  Event event;
  Sequence sequence;
  friend bool operator==(const RecordedEvent& a, const RecordedEvent& b) {
    return a.event == b.event && a.sequence == b.sequence;
  }
};

// All events of a log up to `last`; fails the test on an error.
inline std::vector<RecordedEvent> ReadAll(const LogIndex& index, Sequence last = kLastSequence) {
  LogReader reader(index, 0, last);
  std::vector<RecordedEvent> all;
  std::vector<Event> events(100);
  std::vector<Sequence> sequences(events.size());
  while (const std::size_t count = reader.Read(events.data(), sequences.data(), events.size())) {
    for (std::size_t i = 0; i < count; ++i) all.push_back({events[i], sequences[i]});
  }
  EXPECT_TRUE(reader.status().ok()) << reader.status().message();
  return all;
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Writes a log of `count` random events, with local events and gaps in the numbers, and returns
// them.
inline std::vector<RecordedEvent> WriteRandomLog(const std::string& path, std::uint64_t seed,
                                                 std::uint64_t count, std::uint32_t threads,
                                                 const LogWriterOptions& options = {}) {
  RandomEvents random(seed, threads);
  LogMetadata metadata;
  metadata.program = "/usr/bin/example";
  metadata.arguments = {"-x", "a b"};
  LogWriter writer;
  EXPECT_TRUE(writer.Create(path, {seed, 7}, metadata, options).ok());
  std::vector<RecordedEvent> all;
  Sequence sequence = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    Event event = random.Next();
    const std::uint64_t step = random.Pick(20);
    if (step == 0 && !all.empty()) {
      event.thread = all.back().event.thread;  // a local event: the number of the one before
    } else if (step == 1) {
      sequence += random.Pick(1000) + 1;
    } else if (step == 2 && random.Pick(50) == 0) {
      sequence += std::uint64_t{1} << (33 + random.Pick(10));
    } else {
      ++sequence;
    }
    if (random.Pick(100) == 0) {
      writer.AppendStack(event.thread, static_cast<std::uint32_t>(random.Pick(20)),
                         {event.ip, 0x401000, 0xffffffffffffffff});
    }
    writer.AppendAt(event, sequence);
    all.push_back({event, sequence});
  }
  EXPECT_TRUE(writer.Finish().ok());
  return all;
}

}  // namespace trapline
