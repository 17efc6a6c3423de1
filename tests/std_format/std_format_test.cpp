// The STD text format: what is read, what is refused, and that a trace means the same after a round
// trip.
#include "replay/std_format/std_format.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "detector/detector.h"
#include "tests/support/reference.h"
#include "tests/support/trace_generator.h"

namespace trapline {
namespace {

std::vector<Event> ReadAll(const std::string& text, std::string* error = nullptr) {
  std::istringstream in(text);
  StdReader reader(&in);
  std::vector<Event> events;
  Event event;
  StdReader::Result result;
  while ((result = reader.Next(&event)) == StdReader::Result::kEvent) events.push_back(event);
  if (error != nullptr) *error = reader.error();
  EXPECT_EQ(result == StdReader::Result::kError, !reader.error().empty());
  return events;
}

std::string ErrorOf(const std::string& text) {
  std::string error;
  ReadAll(text, &error);
  return error;
}

std::string WriteAll(const std::vector<Event>& trace, StdWriter* writer) {
  for (const Event& event : trace) writer->Scan(event);
  std::string text;
  for (const Event& event : trace) writer->Write(event, &text);
  return text;
}

std::set<std::pair<std::uint64_t, std::uint64_t>> RacyLocations(const std::vector<Event>& trace) {
  const auto detector = MakeDetector("basicvc", {.all_races = true});
  detector->OnEvents(trace, 0);
  std::set<std::pair<std::uint64_t, std::uint64_t>> pairs;
  for (const Race& race : detector->races()) {
    pairs.insert(std::minmax(race.first.ip, race.second.ip));
  }
  return pairs;
}

TEST(StdReader, ReadsEveryOperation) {
  std::string error;
  const std::vector<Event> events = ReadAll(
      "# a comment\n"
      "T0|fork(T1)|1\n"
      "\n"
      "T0|begin|2\n"
      "T0|w(V1)|12\r\n"
      "T1|r(V1.[3])|18446744073709551615\n"
      "T1|acq(L)|3\n"
      "T1|rel(L)|4\n"
      "T1|end(x)|5\n"
      "T0|join(T1)|6",
      &error);
  EXPECT_EQ(error, "");
  ASSERT_EQ(events.size(), 6U);
  EXPECT_EQ(events[0].kind, EventKind::kFork);
  EXPECT_EQ(events[0].other, 1U);
  EXPECT_EQ(events[1].kind, EventKind::kWrite);
  EXPECT_EQ(events[1].ip, 12U);
  EXPECT_EQ(events[1].size, 8U);
  EXPECT_EQ(events[2].kind, EventKind::kRead);
  EXPECT_EQ(events[2].ip, ~std::uint64_t{0});
  EXPECT_NE(events[2].address, events[1].address);
  EXPECT_EQ(events[3].kind, EventKind::kAcquire);
  EXPECT_EQ(events[4].kind, EventKind::kRelease);
  EXPECT_EQ(events[3].address, events[4].address);
  EXPECT_EQ(events[5].kind, EventKind::kJoin);
}

TEST(StdReader, RefusesWithLineAndReason) {
  const std::string good = "T0|w(V1)|12\n";
  const struct {
    const char* line;
    const char* reason;
  } kCases[] = {
      {"T0", "expected thread|operation|location"},
      {"T0|w(V1)", "expected thread|operation|location"},
      {"|w(V1)|1", "no thread's name"},
      {"T(0|w(V1)|1", "no thread's name"},
      {"T0|write(V1)|1", "unknown operation 'write'"},
      {"T0||1", "unknown operation ''"},
      {"T0|w|1", "needs a name in parentheses"},
      {"T0|w()|1", "needs a name in parentheses"},
      {"T0|w(V1|1", "no closing parenthesis"},
      {"T0|w(V1)x|1", "no closing parenthesis"},
      {"T0|w((V1))|1", "needs a name in parentheses"},
      {"T0|w(V1)|", "decimal number"},
      {"T0|w(V1)|-1", "decimal number"},
      {"T0|w(V1)|12a", "decimal number"},
      {"T0|w(V1)|12|13", "decimal number"},
      {"T0|w(V1)|18446744073709551616", "decimal number"},
      {" T0|begin|", "decimal number"},
  };
  for (const auto& c : kCases) {
    std::string text = good;
    text.append(c.line).append("\n").append(good);
    const std::string error = ErrorOf(text);
    EXPECT_EQ(error.find("line 2: "), 0U) << c.line << " gives " << error;
    EXPECT_NE(error.find(c.reason), std::string::npos) << c.line << " gives " << error;
  }
  EXPECT_EQ(ErrorOf(std::string("T0|\0\x1b[31m|1\n", 12)).find('\x1b'), std::string::npos);
}

TEST(StdReader, StaysInItsError) {
  std::istringstream in("nonsense\nT0|w(V1)|12\n");
  StdReader reader(&in);
  Event event;
  EXPECT_EQ(reader.Next(&event), StdReader::Result::kError);
  EXPECT_EQ(reader.Next(&event), StdReader::Result::kError);
}

// Mutexes, fork, join, memory of all shapes: exactly the same races.
TEST(StdWriter, RoundTripKeepsTheRaces) {
  std::size_t races = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    TraceOptions options;
    options.seed = seed;
    options.keys = 0;
    options.barriers = options.atomics = false;
    options.remaps = false;
    const std::vector<Event> trace = GenerateTrace(options);
    StdWriter writer;
    const std::string text = WriteAll(trace, &writer);
    std::string error;
    const std::vector<Event> again = ReadAll(text, &error);
    ASSERT_EQ(error, "");
    ASSERT_EQ(RacyLocations(again), RacyLocations(trace)) << "seed " << seed << "\n"
                                                          << PrintTrace(trace) << text;
    races += RacyLocations(trace).size();
  }
  EXPECT_GT(races, 1000U);
}

// Keys, barriers, atomics and cleared memory: never a race that was none.
TEST(StdWriter, InventsNoRaces) {
  std::size_t kept = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    TraceOptions options;
    options.seed = seed;
    const std::vector<Event> trace = GenerateTrace(options);
    const auto truth = FindRaces(trace, ReferenceOrder::kHappensBefore).locations;
    StdWriter writer;
    const std::vector<Event> again = ReadAll(WriteAll(trace, &writer));
    for (const auto& pair : RacyLocations(again)) {
      ASSERT_TRUE(truth.contains(pair))
          << "seed " << seed << ": " << std::hex << pair.first << ", " << pair.second << "\n"
          << PrintTrace(trace);
      ++kept;
    }
  }
  EXPECT_GT(kept, 1000U);
}

TEST(StdWriter, NumbersLocations) {
  Event event{};
  event.kind = EventKind::kWrite;
  event.address = 0x1000;
  event.size = 8;
  StdWriter writer(true);
  std::string text;
  for (const std::uint64_t ip : {0x7fffdeadbeefULL, 0ULL, 0x401000ULL, 0x7fffdeadbeefULL}) {
    event.ip = ip;
    writer.Scan(event);
    writer.Write(event, &text);
  }
  EXPECT_EQ(text, "T0|w(V4096)|1\nT0|w(V4096)|0\nT0|w(V4096)|2\nT0|w(V4096)|1\n");
  EXPECT_EQ(writer.Locations(), (std::vector<std::uint64_t>{0x7fffdeadbeef, 0x401000}));
}

}  // namespace
}  // namespace trapline
