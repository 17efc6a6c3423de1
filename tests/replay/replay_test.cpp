// Replay: the same log gives the same report, however it is replayed, split, cut and put together.
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

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

std::string ReportOf(const std::string& path, const ReplayOptions& options) {
  LogIndex index;
  Status status = index.Open(path);
  EXPECT_TRUE(status.ok()) << status.message();
  ReplayResult result;
  status = Replay(index, options, &result);
  EXPECT_TRUE(status.ok()) << status.message();
  LogSymbolizer symbolizer(index.metadata().modules, true);
  return RaceReport(index, result, symbolizer) + JsonReport(index, result, "", symbolizer).dump(1);
}

class ReplayTest : public testing::Test {
 protected:
  // A small program with races, and now and then what moves, frees and hides memory.
  void WriteProgram(const std::string& path, std::uint64_t seed, bool moves, std::uint64_t events) {
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
    ASSERT_TRUE(writer.Create(path, {seed, 1}, {}).ok());
    writer.AppendStack(0, 1, {0x401000, 0x402000});
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
        writer.Append(event);
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
  ReplayResult result;
  ASSERT_TRUE(Replay(index, options, &result).ok());
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
  WriteProgram(scratch_ / "log", 2, true, 5000);
  LogIndex index;
  ASSERT_TRUE(index.Open(scratch_ / "log").ok());
  ReplayOptions options;
  options.detectors = AllDetectors();
  ReplayResult together;
  ASSERT_TRUE(Replay(index, options, &together).ok());
  for (const DetectorResult& expected : together.detectors) {
    ReplayOptions one;
    one.detectors = {expected.name};
    ReplayResult alone;
    ASSERT_TRUE(Replay(index, one, &alone).ok());
    EXPECT_EQ(alone.detectors[0].races, expected.races) << expected.name;
    EXPECT_EQ(alone.detectors[0].statistics, expected.statistics) << expected.name;
  }
}

TEST_F(ReplayTest, ShardsDoNotChangeTheReport) {
  const std::uint64_t rounds = TestCount("TRAPLINE_SHARD_ROUNDS", 6);
  bool any_race = false;
  for (std::uint64_t seed = 1; seed <= rounds; ++seed) {
    WriteProgram(scratch_ / "log", seed, seed % 2 == 0, 1200);
    for (const std::string& detector : AllDetectors()) {
      ReplayOptions options;
      options.detectors = {detector};
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
      ReplayResult result;
      ASSERT_TRUE(Replay(index, options, &result).ok());
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
  ReplayResult result;
  ASSERT_TRUE(Replay(index, options, &result).ok());
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
