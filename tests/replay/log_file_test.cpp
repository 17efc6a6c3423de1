// The trap log as a file: what is written is read, in order; what is cut off or damaged is noticed.
#include "replay/log_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "replay/checksum.h"
#include "replay/log_cut.h"
#include "tests/replay/log_test_support.h"

namespace trapline {
namespace {

TEST(Checksum, KnownValues) {
  EXPECT_EQ(Crc32c("123456789", 9), 0xe3069283U);  // RFC 3720 appendix B.4
  EXPECT_EQ(Crc32cPlain("123456789", 9), 0xe3069283U);
  EXPECT_EQ(Crc32c("", 0), 0U);
}

TEST(Checksum, FastAgreesWithPlain) {
  std::mt19937_64 random(1);
  for (std::size_t size = 0; size < 300; ++size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    EXPECT_EQ(Crc32c(bytes.data(), size), Crc32cPlain(bytes.data(), size));
    const std::size_t half = size / 2;
    EXPECT_EQ(Crc32c(bytes.data() + half, size - half, Crc32c(bytes.data(), half)),
              Crc32c(bytes.data(), size));
  }
}

class LogFileTest : public testing::Test {
 protected:
  ScratchDirectory scratch_;
};

TEST_F(LogFileTest, RoundTripOfRandomEvents) {
  const std::uint64_t rounds = TestCount("TRAPLINE_ROUNDTRIPS", 60);
  for (std::uint64_t seed = 1; seed <= rounds; ++seed) {
    LogWriterOptions options;
    options.chunk_bytes = 4096 << (seed % 3);
    options.checkpoint_events = 1 + seed * 37 % 5000;
    const auto threads = static_cast<std::uint32_t>(1 + seed * seed % 40);
    const auto written = WriteRandomLog(scratch_ / "log", seed, 3000, threads, options);
    LogIndex index;
    const Status status = index.Open(scratch_ / "log");
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(index.missing(), "");
    EXPECT_EQ(index.events(), written.size());
    EXPECT_EQ(index.metadata().arguments, (std::vector<std::string>{"-x", "a b"}));
    ASSERT_EQ(ReadAll(index), written) << "seed " << seed;
  }
}

TEST_F(LogFileTest, OneRecordingAtATimeWritesAFile) {
  LogFile first, second;
  ASSERT_TRUE(first.Create(scratch_ / "log", RecordingId::Random()).ok());
  const Status refused = second.Create(scratch_ / "log", RecordingId::Random());
  EXPECT_NE(refused.message().find("another recording is writing it"), std::string::npos)
      << refused.message();
  EXPECT_FALSE(second.is_open());
  EXPECT_TRUE(first.Append(BlockType::kEnd, "{}").ok());
  EXPECT_TRUE(first.Close().ok());
  EXPECT_EQ(std::filesystem::file_size(scratch_ / "log"), first.file_bytes());
  // Now it may, and begins anew.
  LogFile third;
  EXPECT_TRUE(third.Create(scratch_ / "log", RecordingId::Random()).ok());
  EXPECT_EQ(std::filesystem::file_size(scratch_ / "log"), third.file_bytes());
}

TEST_F(LogFileTest, ReadsFromTheMiddle) {
  const auto written = WriteRandomLog(scratch_ / "log", 5, 5000, 6);
  LogIndex index;
  ASSERT_TRUE(index.Open(scratch_ / "log").ok());
  for (std::size_t at = 0; at < written.size(); at += 611) {
    const Sequence first = written[at].sequence;
    const Sequence last = first + 300;
    std::vector<RecordedEvent> expected;
    for (const RecordedEvent& event : written) {
      if (event.sequence >= first && event.sequence <= last) expected.push_back(event);
    }
    LogReader reader(index, first, last);
    std::vector<Event> events(expected.size() + 10);
    std::vector<Sequence> sequences(events.size());
    ASSERT_EQ(reader.Read(events.data(), sequences.data(), events.size()), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ((RecordedEvent{events[i], sequences[i]}), expected[i]);
    }
  }
}

TEST_F(LogFileTest, SameEventsGiveTheSameFile) {
  WriteRandomLog(scratch_ / "a", 9, 4000, 50);
  WriteRandomLog(scratch_ / "b", 9, 4000, 50);
  EXPECT_EQ(ReadFile(scratch_ / "a"), ReadFile(scratch_ / "b"));
}

TEST_F(LogFileTest, CallStacksAreKept) {
  LogWriter writer;
  ASSERT_TRUE(writer.Create(scratch_ / "log", {1, 1}, {}).ok());
  const std::vector<std::uint64_t> frames = {0x401234, 0x7fffffffffff, 5, 0x401234};
  writer.AppendStack(3, 17, frames);
  Event event{};
  event.thread = 3;
  event.stack = 17;
  writer.Append(event);
  ASSERT_TRUE(writer.Finish().ok());
  LogIndex index;
  ASSERT_TRUE(index.Open(scratch_ / "log").ok());
  LogReader reader(index);
  Event read{};
  ASSERT_EQ(reader.Read(&read, nullptr, 1), 1U);
  EXPECT_EQ(read.stack, 17U);
  EXPECT_EQ(reader.stacks().at(17), frames);
}

TEST_F(LogFileTest, OtherFilesAreRefused) {
  const std::string path = scratch_ / "file";
  LogIndex missing;
  EXPECT_NE(missing.Open(path).message().find("No such file"), std::string::npos);
  WriteFile(path, "");
  LogIndex empty;
  EXPECT_NE(empty.Open(path).message().find("no trap log"), std::string::npos);
  WriteFile(path, std::string(1000, 'x'));
  LogIndex other;
  EXPECT_NE(other.Open(path).message().find("no trap log"), std::string::npos);
  LogIndex directory;
  EXPECT_FALSE(directory.Open(scratch_ / ".").ok());
  WriteRandomLog(path, 1, 10, 1);
  std::string bytes = ReadFile(path);
  bytes[8] = 9;
  WriteFile(path, bytes);
  LogIndex newer;
  EXPECT_NE(newer.Open(path).message().find("version 9"), std::string::npos);
}

TEST_F(LogFileTest, LogsOfTheFormatBeforeAreRead) {
  const std::string path = scratch_ / "file";
  WriteRandomLog(path, 1, 10, 1);
  for (std::uint32_t version = kOldestLogVersion; version < kLogVersion; ++version) {
    std::string bytes = ReadFile(path);
    FileHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    header.version = version;
    header.checksum = Crc32c(&header, offsetof(FileHeader, checksum));
    std::memcpy(bytes.data(), &header, sizeof header);
    WriteFile(path, bytes);
    LogIndex older;
    EXPECT_EQ(older.Open(path).message(), "");
    EXPECT_EQ(older.version(), version);
    EXPECT_EQ(older.events(), 10U);
  }
}

// What a damaged log still gives must be the beginning of what was written.
void ExpectPrefix(const std::vector<RecordedEvent>& read,
                  const std::vector<RecordedEvent>& written) {
  ASSERT_LE(read.size(), written.size());
  ASSERT_TRUE(std::equal(read.begin(), read.end(), written.begin()));
}

TEST_F(LogFileTest, EveryTruncationReadsUpToItsLastWholeBlock) {
  LogWriterOptions options;
  options.chunk_bytes = 4096;
  options.checkpoint_events = 60;
  const auto written = WriteRandomLog(scratch_ / "log", 3, 250, 4, options);
  const std::string bytes = ReadFile(scratch_ / "log");
  std::uint64_t events_before = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    WriteFile(scratch_ / "cut", bytes.substr(0, size));
    LogIndex index;
    const Status status = index.Open(scratch_ / "cut");
    if (!status.ok()) {
      ASSERT_LT(size, sizeof(FileHeader));
      continue;
    }
    ASSERT_FALSE(index.damaged()) << index.missing();
    ASSERT_NE(index.missing(), "");
    ASSERT_GE(index.events(), events_before);  // more bytes never give fewer events
    events_before = index.events();
    ASSERT_EQ(ReadAll(index).size(), index.events());  // whole blocks, all of them
    const auto complete = ReadAll(index, index.complete_up_to());
    ExpectPrefix(complete, written);
    // Complete means: no event up to there is missing.
    if (complete.size() < written.size()) {
      ASSERT_GT(written[complete.size()].sequence, index.complete_up_to());
    }
  }
  EXPECT_EQ(events_before, written.size());
}

TEST_F(LogFileTest, EveryDamagedByteIsNoticed) {
  LogWriterOptions options;
  options.chunk_bytes = 4096;
  options.checkpoint_events = 100;
  const auto written = WriteRandomLog(scratch_ / "log", 4, 400, 3, options);
  const std::string bytes = ReadFile(scratch_ / "log");
  const std::uint64_t count = TestCount("TRAPLINE_CORRUPTIONS", 20'000);
  std::mt19937_64 random(11);
  const std::string path = "/dev/shm/trapline-test-" + std::to_string(getpid());
  WriteFile(path, bytes);
  FILE* file = fopen(path.c_str(), "r+b");
  ASSERT_NE(file, nullptr);
  const auto put = [file](std::size_t offset, int byte) {
    fseek(file, static_cast<long>(offset), SEEK_SET);
    fputc(byte, file);
    fflush(file);
  };
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t offset = random() % bytes.size();
    const int change = static_cast<int>(1 + random() % 255);
    put(offset, static_cast<unsigned char>(bytes[offset]) ^ change);
    LogIndex index;
    if (!index.Open(path).ok()) {
      ++refused;
      ASSERT_LT(offset, sizeof(FileHeader));
    } else {
      // No block at or behind the damage may be used.
      ASSERT_LE(index.valid_bytes(), offset);
      ASSERT_TRUE(index.damaged());
      ASSERT_NE(index.missing().find("checksum"), std::string::npos) << index.missing();
      ExpectPrefix(ReadAll(index, index.complete_up_to()), written);
    }
    put(offset, static_cast<unsigned char>(bytes[offset]));
  }
  fclose(file);
  unlink(path.c_str());
  EXPECT_GT(refused, 0U);
}

// Blocks whose checksums are right but whose contents are wrong: a hostile log, not a damaged one.
TEST_F(LogFileTest, WrongContentsUnderGoodChecksumsAreRefused) {
  LogWriterOptions options;
  options.chunk_bytes = 4096;
  WriteRandomLog(scratch_ / "log", 4, 400, 3, options);
  const std::string bytes = ReadFile(scratch_ / "log");
  std::mt19937_64 random(12);
  std::uint64_t failures = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string changed = bytes;
    // Change a few bytes anywhere, then make every checksum right again.
    for (std::uint64_t n = 1 + random() % 4; n > 0; --n) {
      changed[sizeof(FileHeader) + random() % (bytes.size() - sizeof(FileHeader))] =
          static_cast<char>(random());
    }
    for (std::size_t at = sizeof(FileHeader); at + sizeof(BlockHeader) <= changed.size();) {
      BlockHeader header;
      std::memcpy(&header, changed.data() + at, sizeof(header));
      const std::size_t payload = at + sizeof(header);
      if (header.stored_bytes > changed.size() - payload) break;
      header.payload_checksum = Crc32c(changed.data() + payload, header.stored_bytes);
      header.header_checksum = Crc32c(&header, offsetof(BlockHeader, header_checksum));
      std::memcpy(changed.data() + at, &header, sizeof(header));
      at = payload + header.stored_bytes;
    }
    WriteFile(scratch_ / "changed", changed);
    LogIndex index;
    if (!index.Open(scratch_ / "changed").ok() || !index.missing().empty()) {
      ++failures;
      continue;
    }
    LogReader reader(index);
    std::vector<Event> events(64);
    std::uint64_t read = 0;
    while (const std::size_t count = reader.Read(events.data(), nullptr, events.size()))
      read += count;
    if (reader.status().ok()) {
      EXPECT_EQ(read, index.events());
    } else {
      ++failures;
    }
  }
  EXPECT_GT(failures, 1000U);
}

TEST_F(LogFileTest, FullDiskLeavesAValidLog) {
  const std::string path = scratch_ / "log";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    LogWriter writer;
    LogWriterOptions options;
    options.checkpoint_events = 5000;
    bool as_expected = writer.Create(path, {1, 2}, {}, options).ok();
    RandomEvents random(1, 4);
    for (int i = 0; i < 100'000; ++i) writer.Append(random.Next());
    const Status status = writer.Finish();
    as_expected = as_expected && !status.ok() && status.message().find(path) != std::string::npos &&
                  status.message().find("make room") != std::string::npos;
    _exit(as_expected ? 0 : 1);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  LogIndex index;
  ASSERT_TRUE(index.Open(path).ok());
  EXPECT_EQ(index.valid_bytes(), index.file_bytes());  // cut back to the last whole block
  EXPECT_FALSE(index.finished());
  EXPECT_GT(index.complete_up_to(), 0U);
  RandomEvents random(1, 4);
  Sequence sequence = 0;
  for (const RecordedEvent& event : ReadAll(index, index.complete_up_to())) {
    ASSERT_EQ(event, (RecordedEvent{random.Next(), ++sequence}));
  }
  EXPECT_EQ(sequence, index.complete_up_to());
}

TEST_F(LogFileTest, PartsThatLeaveGaps) {
  const LogPart first{0, 99, true, {}};
  const LogPart rest{100, kLastSequence, true, {}};
  EXPECT_TRUE(Uncovered({first, rest}, {0, 1}).empty());
  const auto gaps = Uncovered({first, {100, kLastSequence, false, {1}}}, {0, 1, 2});
  ASSERT_EQ(gaps.size(), 1U);
  EXPECT_EQ(gaps[0].first, 100U);
  EXPECT_EQ(gaps[0].threads, (std::vector<ThreadId>{0, 2}));
  EXPECT_EQ(Uncovered({rest}, {0})[0].last, 99U);
}

TEST_F(LogFileTest, CutAndMergeGiveTheSameEvents) {
  const auto written = WriteRandomLog(scratch_ / "log", 21, 6000, 5);
  LogIndex index;
  ASSERT_TRUE(index.Open(scratch_ / "log").ok());
  const Sequence middle = written[2500].sequence;
  ASSERT_TRUE(CutLog(index, {0, middle, true, {}}, scratch_ / "a").ok());
  ASSERT_TRUE(CutLog(index, {middle + 1, kLastSequence, false, {0, 3}}, scratch_ / "b").ok());
  ASSERT_TRUE(CutLog(index, {middle + 1, kLastSequence, false, {1, 2, 4}}, scratch_ / "c").ok());
  const Status status =
      MergeLogs({scratch_ / "c", scratch_ / "a", scratch_ / "b"}, scratch_ / "merged");
  ASSERT_TRUE(status.ok()) << status.message();
  LogIndex merged;
  ASSERT_TRUE(merged.Open(scratch_ / "merged").ok());
  EXPECT_TRUE(merged.metadata().parts.empty());
  EXPECT_EQ(merged.missing(), "");
  EXPECT_EQ(ReadAll(merged), written);

  ASSERT_TRUE(MergeLogs({scratch_ / "a", scratch_ / "b"}, scratch_ / "less").ok());
  LogIndex less;
  ASSERT_TRUE(less.Open(scratch_ / "less").ok());
  const auto gaps = Uncovered(less.metadata().parts, less.metadata().threads);
  ASSERT_EQ(gaps.size(), 1U);
  EXPECT_EQ(gaps[0].threads, (std::vector<ThreadId>{1, 2, 4}));
  EXPECT_EQ(gaps[0].first, middle + 1);

  EXPECT_NE(
      MergeLogs({scratch_ / "a", scratch_ / "log"}, scratch_ / "x").message().find("both hold"),
      std::string::npos);
  WriteRandomLog(scratch_ / "other", 22, 10, 1);
  EXPECT_NE(
      MergeLogs({scratch_ / "a", scratch_ / "other"}, scratch_ / "x").message().find("different"),
      std::string::npos);
}

}  // namespace
}  // namespace trapline
