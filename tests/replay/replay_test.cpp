// Replay: the same log gives the same report, however it is replayed, split, cut and put together.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "replay/late_repeats.h"
#include "replay/log_cut.h"
#include "replay/replay_report.h"
#include "replay/replayer.h"
#include "replay/sharded_detector.h"
#include "tests/replay/log_test_support.h"
#include "tests/replay/synthetic_program.h"

namespace trapline {
namespace {

std::vector<std::string> AllDetectors() {
  std::vector<std::string> names;
  for (const DetectorInfo& info : Detectors()) names.emplace_back(info.name);
  return names;
}

ReplayResult ResultOf(const LogIndex& index, const ReplayOptions& options) {
  ReplayResult result;
  const Status status = Replay(index, options, &result);
  EXPECT_TRUE(status.ok()) << status.message();
  return result;
}

std::string ReportOf(const std::string& path, const ReplayOptions& options) {
  LogIndex index;
  const Status status = index.Open(path);
  EXPECT_TRUE(status.ok()) << status.message();
  const ReplayResult result = ResultOf(index, options);
  LogSymbolizer symbolizer(index.metadata().modules, true);
  return RaceReport(index, result, symbolizer) + JsonReport(index, result, "", symbolizer).dump(1);
}

class ReplayTest : public testing::Test {
 protected:
  // A small program with races; `moves`: and now and then what moves, frees and hides memory;
  // `late`: and what is repeated in earlier epochs.
  void WriteProgram(const std::string& path, std::uint64_t seed, bool moves, std::uint64_t events,
                    bool late = false) {
    SyntheticOptions options;
    options.seed = seed;
    options.threads = static_cast<std::uint32_t>(2 + seed % 5);
    options.events = events;
    options.racy_loops = 20;
    options.loops = 60;
    options.burst = static_cast<double>(1 + seed % 10);
    SyntheticProgram program(options);
    std::mt19937_64 random(seed);
    LogWriter writer;
    LogMetadata metadata;
    if (late) metadata.filter = "fasttrack";
    ASSERT_TRUE(writer.Create(path, {seed, 1}, metadata).ok());
    writer.AppendStack(0, 1, {0x401000, 0x402000});
    std::map<ThreadId, std::uint64_t> moments;
    std::vector<Event> next;
    while (program.Next(&next)) {
      for (Event& event : next) {
        if (IsAccess(event.kind)) {
          event.stack = event.thread == 1 ? 1 : 0;
          // Everything onto a few pages around a shard's boundary, at odd offsets.
          if (random() % 4 != 0)
            event.address = 0x500000 + 8 * ShardMap::kGranule - 300 + random() % 600;
          if (random() % 150 == 0) event.size = 1 + random() % 200'000;
          if (random() % 9 == 0) event.ip = 0;
          if (random() % 100 == 0) {
            event.kind = static_cast<EventKind>(2 + random() % 3);
            event.order = MemoryOrder::kAcqRel;
            event.size = 8;
          }
        }
        std::uint64_t& moment = moments[event.thread];
        if (late && IsReleaseOfLock(event.kind) && random() % 4 != 0) event.aux = ++moment;
        writer.Append(event);
        if (late && random() % 20 == 0) {
          Event extra{};
          extra.thread = event.thread;
          extra.kind = moment == 0 || random() % 4 == 0 ? EventKind::kMoment
                       : random() % 2 == 0              ? EventKind::kEarlierWrite
                                                        : EventKind::kEarlierRead;
          if (extra.kind == EventKind::kMoment) {
            extra.aux = ++moment;
          } else {
            extra.address = 0x500000 + 8 * ShardMap::kGranule - 300 + random() % 600;
            extra.size = std::uint64_t{1} << random() % 5;
            extra.ip = 0x410000 + 4 * (random() % 20);
            extra.aux = 1 + random() % moment;
          }
          writer.Append(extra);
        }
        if (!moves || random() % 200 != 0) continue;
        Event move{};
        move.thread = event.thread;
        move.address = 0x500000 + random() % 16 * 32768 + random() % 64 * 8;
        move.size = 1 + random() % 100'000;
        switch (random() % 4) {
          case 0:
            move.kind = EventKind::kClearHistory;
            break;
          case 1:
            move.kind = EventKind::kUntrack;
            break;
          case 2:
            move.kind = EventKind::kTrack;
            break;
          default:
            move.kind = EventKind::kCopyHistory;
            move.aux = 0x500000 + random() % 16 * 32768 + random() % 64 * 8;
        }
        writer.Append(move);
      }
      next.clear();
    }
    ASSERT_TRUE(writer.Finish().ok());
  }

  ScratchDirectory scratch_;
};

TEST_F(ReplayTest, TwiceGivesTheSameReport) {
  WriteProgram(scratch_ / "log", 1, true, 5000);
  ReplayOptions options;
  options.detectors = AllDetectors();
  const std::string report = ReportOf(scratch_ / "log", options);
  EXPECT_EQ(report, ReportOf(scratch_ / "log", options));
  EXPECT_NE(report.find("race"), std::string::npos);
}

TEST_F(ReplayTest, TellsWhereThreadsWereCreated) {
  LogWriter writer;
  ASSERT_TRUE(writer.Create(scratch_ / "log", {1, 1}, {}).ok());
  writer.AppendStack(0, 1, {0x401005, 0x402005});
  for (const ThreadId child : {1, 2}) {
    Event fork{};
    fork.kind = EventKind::kFork;
    fork.other = child;
    fork.stack = child == 1 ? 1 : 0;
    writer.Append(fork);
  }
  for (const ThreadId thread : {1, 2}) {
    Event write{};
    write.kind = EventKind::kWrite;
    write.thread = thread;
    write.address = 0x500000;
    write.size = 8;
    write.ip = 0x403000;
    writer.Append(write);
  }
  ASSERT_TRUE(writer.Finish().ok());
  LogIndex index;
  ASSERT_TRUE(index.Open(scratch_ / "log").ok());
  ReplayOptions options;
  options.detectors = {"fasttrack"};
  const ReplayResult result = ResultOf(index, options);
  LogSymbolizer symbolizer({}, true);
  // Return addresses: the calls are before. Of thread 2 nothing is known.
  const std::string text = RaceReport(index, result, symbolizer);
  EXPECT_NE(text.find("  thread 1 was created by thread 0 at\n    #0 0x401004\n    #1 0x402004\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("thread 2 was created"), std::string::npos) << text;
  const auto json = JsonReport(index, result, "", symbolizer);
  const auto& race = json["detectors"][0]["races"][0];
  EXPECT_EQ(race["earlier"]["created"]["parent"], 0);
  EXPECT_EQ(race["earlier"]["created"]["stack"].size(), 2U);
  EXPECT_FALSE(race["later"]["created"].contains("stack"));
}

TEST_F(ReplayTest, AllInOnePassIsEachAlone) {
  for (const bool late : {false, true}) {
    WriteProgram(scratch_ / "log", 2, true, 5000, late);
    LogIndex index;
    ASSERT_TRUE(index.Open(scratch_ / "log").ok());
    ReplayOptions options;
    options.detectors = AllDetectors();
    const ReplayResult together = ResultOf(index, options);
    for (const DetectorResult& expected : together.detectors) {
      ReplayOptions one;
      one.detectors = {expected.name};
      const ReplayResult alone = ResultOf(index, one);
      EXPECT_EQ(alone.detectors[0].races, expected.races) << expected.name;
      EXPECT_EQ(alone.detectors[0].statistics, expected.statistics) << expected.name;
    }
  }
}

TEST_F(ReplayTest, ShardsDoNotChangeTheReport) {
  const std::uint64_t rounds = TestCount("TRAPLINE_SHARD_ROUNDS", 6);
  bool any_race = false;
  for (std::uint64_t seed = 1; seed <= rounds; ++seed) {
    WriteProgram(scratch_ / "log", seed, seed % 2 == 0, 1200, seed % 3 == 0);
    for (const std::string& detector : AllDetectors()) {
      ReplayOptions options;
      options.detectors = {detector};
      if (seed % 4 == 1) {
        options.ordering_rule = [](const Access& first, const Access& second) {
          const std::uint64_t code = (first.ip + second.ip) / 4;
          return code % 4 == 0   ? Meeting::kOrder
                 : code % 4 == 1 ? Meeting::kNoOrder
                 : code % 4 == 2 ? Meeting::kPolled
                                 : Meeting::kRace;
        };
      }
      const std::string expected = ReportOf(scratch_ / "log", options);
      any_race = any_race || expected.find(" race on ") != std::string::npos;
      for (const unsigned shards : {2U, 3U, 7U}) {
        options.shards = shards;
        ASSERT_EQ(ReportOf(scratch_ / "log", options), expected)
            << detector << ", seed " << seed << ", " << shards << " shards";
      }
    }
  }
  EXPECT_TRUE(any_race);
}

// Detectors see a piece of the long write; the report shows all of it, also when there were more of
// such writes than are remembered.
TEST_F(ReplayTest, ReportsShowWholeAccesses) {
  for (const std::uint64_t others : {0, 100'000}) {
    LogWriter writer;
    ASSERT_TRUE(writer.Create(scratch_ / "log", {others, 1}, {}).ok());
    const auto append = [&](EventKind kind, ThreadId thread, std::uint64_t address,
                            std::uint64_t size, ThreadId other) {
      Event event{};
      event.kind = kind;
      event.thread = thread;
      event.address = address;
      event.size = size;
      event.ip = 0x401000 + thread;
      event.other = other;
      writer.Append(event);
    };
    append(EventKind::kFork, 0, 0, 0, 1);
    for (std::uint64_t i = 0; i < others; ++i) append(EventKind::kWrite, 0, 0x600000 - 4, 8, 0);
    append(EventKind::kWrite, 0, 0x500010, 100'000, 0);
    append(EventKind::kRead, 1, 0x508000, 8, 0);
    ASSERT_TRUE(writer.Finish().ok());
    LogIndex index;
    ASSERT_TRUE(index.Open(scratch_ / "log").ok());
    for (const unsigned shards : {1U, 3U}) {
      ReplayOptions options;
      options.detectors = {"fasttrack"};
      options.shards = shards;
      const ReplayResult result = ResultOf(index, options);
      ASSERT_EQ(result.detectors[0].races.size(), 1U);
      const Race& race = result.detectors[0].races[0];
      EXPECT_EQ(race.first.address, 0x500010U) << others;
      EXPECT_EQ(race.first.size, 100'000U) << others;
      EXPECT_EQ(race.address, 0x508000U);
      EXPECT_EQ(race.size, 8U);
    }
  }
}

TEST_F(ReplayTest, TheUsualDetectorsAreSplit) {
  for (const char* name : {"empty", "basicvc", "djit+", "fasttrack", "eraser", "acculock"}) {
    EXPECT_TRUE(Shardable(name)) << name;
  }
  EXPECT_FALSE(Shardable("tree+fasttrack"));
  EXPECT_FALSE(Shardable("pacer"));
  EXPECT_FALSE(Shardable("literace"));
}

TEST_F(ReplayTest, CutAndMergedLogGivesTheSameReport) {
  WriteProgram(scratch_ / "log", 3, true, 12'000);
  LogIndex index;
  ASSERT_TRUE(index.Open(scratch_ / "log").ok());
  std::vector<std::string> pieces;
  const auto cut = [&](Sequence first, Sequence last, bool all, std::vector<ThreadId> threads) {
    pieces.push_back(scratch_ / ("piece" + std::to_string(pieces.size())));
    const Status status = CutLog(index, {first, last, all, std::move(threads)}, pieces.back());
    EXPECT_TRUE(status.ok()) << status.message();
  };
  cut(7000, kLastSequence, false, {1, 2, 3, 4, 5});
  cut(0, 1000, true, {});
  cut(1001, 6999, true, {});
  cut(7000, kLastSequence, false, {0});
  ASSERT_TRUE(MergeLogs(pieces, scratch_ / "merged").ok());
  ReplayOptions options;
  options.detectors = AllDetectors();
  EXPECT_EQ(ReportOf(scratch_ / "merged", options), ReportOf(scratch_ / "log", options));
}

// A write that thread 0 repeats before, or after, it gives something away in one of many ways, told
// when thread 1 has taken that and is about to write there, too. DJIT+ has no idea of late repeats;
// FastTrack is told of them as it was online.
TEST_F(ReplayTest, LateRepeatsRaceWhereTheyWereMade) {
  const auto make = [](EventKind kind, ThreadId thread, std::uint64_t address, ThreadId other = 0) {
    Event event{};
    event.kind = kind;
    event.order = IsAtomic(kind) ? MemoryOrder::kSeqCst : MemoryOrder::kRelaxed;
    event.thread = thread;
    event.address = address;
    event.size = IsAccess(kind) || IsEarlierAccess(kind) ? 8 : 0;
    event.other = other;
    return event;
  };
  using Kind = EventKind;
  const std::vector<std::pair<Event, Event>> hand_overs = {
      {make(Kind::kRelease, 0, 7), make(Kind::kAcquire, 1, 7)},
      {make(Kind::kReleaseShared, 0, 7), make(Kind::kAcquire, 1, 7)},
      {make(Kind::kAtomicWrite, 0, 0x700000), make(Kind::kAtomicRead, 1, 0x700000)},
      {make(Kind::kAtomicRmw, 0, 0x700000), make(Kind::kAtomicRmw, 1, 0x700000)},
      {make(Kind::kHappensBefore, 0, 7), make(Kind::kHappensAfter, 1, 7)},
      {make(Kind::kBarrierEnter, 0, 7), make(Kind::kBarrierLeave, 1, 7)},
      {make(Kind::kFork, 0, 0, 1), make(Kind::kIdentity, 1, 0, 1)},
      {make(Kind::kThreadEnd, 0, 0), make(Kind::kJoin, 1, 0, 0)}};
  for (const auto& [gives, takes] : hand_overs) {
    for (const bool before : {true, false}) {
      LogWriter writer;
      LogMetadata metadata;
      metadata.filter = "fasttrack";
      ASSERT_TRUE(writer.Create(scratch_ / "log", {1, 1}, metadata).ok());
      const auto append = [&writer](Event event, std::uint64_t moment = 0) {
        event.aux = moment;
        writer.Append(event);
      };
      append(make(Kind::kFork, 0, 0, gives.kind == Kind::kFork ? 2 : 1));
      append(make(Kind::kMoment, 0, 0), 10);
      append(make(Kind::kWrite, 0, 0x500000));
      if (gives.kind == Kind::kBarrierEnter) append(make(Kind::kBarrierEnter, 1, 7));
      const bool with_moment = IsReleaseOfLock(gives.kind);
      append(gives, with_moment ? 20 : 0);
      if (!with_moment) append(make(Kind::kMoment, 0, 0), 20);
      append(takes);
      append(make(Kind::kEarlierWrite, 0, 0x500000), before ? 15 : 25);
      append(make(Kind::kWrite, 1, 0x500000));
      ASSERT_TRUE(writer.Finish().ok());
      LogIndex index;
      ASSERT_TRUE(index.Open(scratch_ / "log").ok());
      ReplayOptions options;
      options.detectors = {"fasttrack", "djit+"};
      const ReplayResult result = ResultOf(index, options);
      // What a thread does after its end is nonsense.
      if (gives.kind == Kind::kThreadEnd && !before) continue;
      for (const DetectorResult& detector : result.detectors) {
        EXPECT_EQ(detector.race_count, before ? 0U : 1U)
            << detector.name << ", kind " << static_cast<int>(gives.kind);
      }
    }
  }
}

// What FastTrack knows of when a late repeat was made is its epoch, in which there may be others.
TEST_F(ReplayTest, LateRepeatsOfOneEpochAreToldApart) {
  LogWriter writer;
  LogMetadata metadata;
  metadata.filter = "fasttrack";
  ASSERT_TRUE(writer.Create(scratch_ / "log", {1, 1}, metadata).ok());
  const auto append = [&writer](EventKind kind, ThreadId thread, std::uint64_t ip = 0,
                                std::uint64_t moment = 0, ThreadId other = 0) {
    Event event{};
    event.kind = kind;
    event.thread = thread;
    event.address = ip != 0 ? 0x500000 : 7;
    event.size = ip != 0 ? 8 : 0;
    event.ip = ip;
    event.aux = moment;
    event.other = other;
    writer.Append(event);
  };
  append(EventKind::kFork, 0, 0, 0, 1);
  append(EventKind::kMoment, 0, 0, 10);
  append(EventKind::kRead, 0, 0x401000);
  append(EventKind::kWrite, 0, 0x402000);
  append(EventKind::kRelease, 0, 0, 20);
  append(EventKind::kEarlierRead, 0, 0x401000, 25);
  append(EventKind::kEarlierWrite, 0, 0x402000, 25);
  append(EventKind::kEarlierRead, 0, 0x401000, 26);
  append(EventKind::kWrite, 1, 0x403000);
  ASSERT_TRUE(writer.Finish().ok());
  LogIndex index;
  ASSERT_TRUE(index.Open(scratch_ / "log").ok());
  ReplayOptions options;
  options.detectors = {"fasttrack"};
  const ReplayResult result = ResultOf(index, options);
  EXPECT_EQ(result.detectors[0].races.size(), 2U);  // the read's and the write's
}

// More of them than are kept in memory come out as they do from memory.
TEST_F(ReplayTest, LateRepeatsThatDoNotFitIntoMemory) {
  WriteProgram(scratch_ / "log", 4, true, 20'000, true);
  LogIndex index;
  ASSERT_TRUE(index.Open(scratch_ / "log").ok());
  const std::vector<RecordedEvent> log = ReadAll(index);
  std::vector<Event> straight[2];
  for (const std::size_t in_memory : {std::size_t{1} << 20, std::size_t{100}}) {
    LateRepeats late(in_memory);
    std::size_t number = 0;
    for (const RecordedEvent& recorded : log) {
      late.Note(std::span(&recorded.event, 1));
      number += IsEarlierAccess(recorded.event.kind) ? 1 : 0;
    }
    ASSERT_GT(number, 300U);
    ASSERT_TRUE(late.Finish().ok());
    LogReader again(index);
    StraightReader reader(again, late);
    std::vector<Event>& events = straight[in_memory == 100 ? 1 : 0];
    events.resize(log.size() + 1);
    events.resize(reader.Read(events.data(), events.size()));
    EXPECT_TRUE(reader.status().ok());
    EXPECT_GT(events.size(), log.size() / 2);
  }
  EXPECT_EQ(straight[0], straight[1]);
}

TEST_F(ReplayTest, UnknownDetectorIsAnError) {
  WriteProgram(scratch_ / "log", 1, false, 100);
  LogIndex index;
  ASSERT_TRUE(index.Open(scratch_ / "log").ok());
  ReplayOptions options;
  options.detectors = {"fastrack"};
  ReplayResult result;
  const Status status = Replay(index, options, &result);
  EXPECT_NE(status.message().find("fastrack"), std::string::npos);
  EXPECT_NE(status.message().find("fasttrack"), std::string::npos);
}

TEST_F(ReplayTest, FilterStandsInFront) {
  WriteProgram(scratch_ / "log", 1, false, 3000);
  LogIndex index;
  ASSERT_TRUE(index.Open(scratch_ / "log").ok());
  ReplayOptions options;
  options.detectors = {"fasttrack"};
  options.filter = "tree";
  const ReplayResult result = ResultOf(index, options);
  EXPECT_EQ(result.detectors[0].name, "tree+fasttrack");
  EXPECT_FALSE(result.detectors[0].statistics.empty());
}

TEST(ShardMapTest, CopiedHistoryStaysWhereItIs) {
  ShardMap map(4);
  const auto shards = [&map](std::uint64_t address, std::uint64_t size) {
    std::vector<std::tuple<unsigned, std::uint64_t, std::uint64_t>> pieces;
    map.ForEachPiece(address, size,
                     [&pieces](unsigned shard, std::uint64_t at, std::uint64_t length) {
                       pieces.emplace_back(shard, at, length);
                     });
    return pieces;
  };
  constexpr std::uint64_t kG = ShardMap::kGranule;
  using Pieces = std::vector<std::tuple<unsigned, std::uint64_t, std::uint64_t>>;
  EXPECT_EQ(shards(kG - 4, 8), (Pieces{{0, kG - 4, 4}, {1, kG, 4}}));
  map.Copy(10 * kG, kG - 8, 16);
  EXPECT_EQ(
      shards(10 * kG - 1, 20),
      (Pieces{{1, 10 * kG - 1, 1}, {0, 10 * kG, 8}, {1, 10 * kG + 8, 8}, {2, 10 * kG + 16, 3}}));
  map.Copy(20 * kG + 4, 10 * kG + 4, 4);
  EXPECT_EQ(shards(20 * kG, 10),
            (Pieces{{0, 20 * kG, 4}, {0, 20 * kG + 4, 4}, {0, 20 * kG + 8, 2}}));
  map.Copy(10 * kG + 2, 3 * kG, 2);  // over a part of what was moved before
  EXPECT_EQ(shards(10 * kG, 8),
            (Pieces{{0, 10 * kG, 2}, {3, 10 * kG + 2, 2}, {0, 10 * kG + 4, 4}}));
  map.Copy(~std::uint64_t{0} - 10, 0, ~std::uint64_t{0});  // to the end of memory and no further
  EXPECT_FALSE(shards(~std::uint64_t{0} - 12, 10).empty());
}

}  // namespace
}  // namespace trapline
