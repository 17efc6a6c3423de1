// Recording through shared memory: many threads, a drain that may be slow, dead or replaced, and
// processes killed at random moments.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "replay/log_drain.h"
#include "replay/log_recorder.h"
#include "replay/log_segment.h"
#include "tests/replay/log_test_support.h"

namespace trapline {
namespace {

// The i-th event of a thread, which a reader can check. Values say what the event is.
Event NumberedEvent(ThreadId thread, std::uint64_t i) {
  Event event{};
  event.kind = i % 7 == 0 ? EventKind::kWrite : EventKind::kRead;
  event.thread = thread;
  event.address = 0x10000 + i * 8;
  event.size = 8;
  event.ip = 0x400000 + i % 300 * 4;
  event.flags = kHasValue;
  event.aux = i;
  return event;
}

// Every thread's events must be there from the first on without a gap, in increasing order. Returns
// how many there are of each.
std::map<ThreadId, std::uint64_t> CheckNumbered(const LogIndex& index, Sequence last) {
  std::map<ThreadId, std::uint64_t> counts;
  Sequence before = 0;
  for (const RecordedEvent& recorded : ReadAll(index, last)) {
    EXPECT_GE(recorded.sequence, before);
    before = recorded.sequence;
    std::uint64_t& count = counts[recorded.event.thread];
    EXPECT_TRUE(recorded.event == NumberedEvent(recorded.event.thread, count));
    ++count;
    if (testing::Test::HasFailure()) break;
  }
  return counts;
}

void Produce(const LogSegment& segment, ThreadId thread, std::uint64_t count,
             unsigned local_every) {
  auto log = std::make_unique<ThreadLog>();
  log->Open(segment.view(), thread);
  for (std::uint64_t i = 0; i < count; ++i) {
    while (!log->Reserve()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (local_every != 0 && i % local_every != 0) {
      log->AppendLocal(NumberedEvent(thread, i));
    } else {
      log->AppendOrdered(NumberedEvent(thread, i));
    }
  }
  log->Finish();
}

class LogRecordingTest : public testing::Test {
 protected:
  const std::atomic<bool> never_{false};
  ScratchDirectory scratch_;
};

TEST_F(LogRecordingTest, ManyThreadsInATotalOrder) {
  constexpr std::uint64_t kEvents = 50'000;
  constexpr ThreadId kThreads = 8;
  LogRecorder recorder;
  RecorderOptions options;
  options.segment.memory_bytes = 2 << 20;
  LogMetadata metadata;
  metadata.program = "example";
  metadata.clock = "monotonic";
  const Status started = recorder.Start(scratch_ / "log", metadata, options);
  ASSERT_TRUE(started.ok()) << started.message();
  // A shared counter, changed under the recording's own order: each thread notes the value it saw,
  // and the log must show the values in order.
  std::atomic<std::uint64_t> counter{0};
  std::atomic_flag cell = ATOMIC_FLAG_INIT;
  std::vector<std::thread> threads;
  for (ThreadId thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      auto log = std::make_unique<ThreadLog>();
      log->Open(recorder.segment().view(), thread);
      for (std::uint64_t i = 0; i < kEvents; ++i) {
        ASSERT_TRUE(recorder.MakeRoom(*log));
        while (cell.test_and_set()) {
        }
        Event event = NumberedEvent(thread, 0);
        event.aux = counter.fetch_add(1);
        log->AppendOrdered(event);
        cell.clear();
      }
      log->Finish();
    });
  }
  ASSERT_TRUE(recorder.segment().AddMetadata(
      {{"modules", {{{"path", "/lib/late.so"}, {"begin", 4096}, {"end", 8192}}}}}));
  for (std::thread& thread : threads) thread.join();
  const Status stopped = recorder.Stop();
  ASSERT_TRUE(stopped.ok()) << stopped.message();

  LogIndex index;
  ASSERT_TRUE(index.Open(scratch_ / "log").ok());
  EXPECT_EQ(index.missing(), "");
  ASSERT_EQ(index.metadata().modules.size(), 1U);
  EXPECT_EQ(index.metadata().modules[0].path, "/lib/late.so");
  const auto events = ReadAll(index);
  ASSERT_EQ(events.size(), kEvents * kThreads);
  for (std::uint64_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(events[i].event.aux, i);
    ASSERT_EQ(events[i].sequence, i + 1);
  }
}

TEST_F(LogRecordingTest, LocalEventsStayBetweenOrderedOnes) {
  LogRecorder recorder;
  ASSERT_TRUE(recorder.Start(scratch_ / "log", {}, {}).ok());
  std::vector<std::thread> threads;
  for (ThreadId thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] { Produce(recorder.segment(), thread, 20'000, 9); });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(recorder.Stop().ok());
  LogIndex index;
  ASSERT_TRUE(index.Open(scratch_ / "log").ok());
  for (const auto& [thread, count] : CheckNumbered(index, kLastSequence)) EXPECT_EQ(count, 20'000U);
}

TEST_F(LogRecordingTest, ManyAtOnceAreWhatTheyWereOneByOne) {
  LogRecorder recorder;
  ASSERT_TRUE(recorder.Start(scratch_ / "log", {}, {}).ok());
  constexpr std::uint64_t kEvents = 30'000;
  std::mt19937_64 random(1);
  std::vector<Event> expected;
  for (std::uint64_t i = 0; i < kEvents; ++i) {
    Event event = NumberedEvent(1, i);
    // Many more sites than the coding has room for, some in the same slot.
    event.stack = static_cast<std::uint32_t>(random() % 3 == 0 ? random() % 5000 : i % 40);
    if (random() % 4 == 0) event.flags = 0;
    if (event.flags == 0) event.aux = 0;
    event.size = std::uint64_t{1} << random() % 4;
    if (event.flags != 0) event.aux &= event.size == 8 ? ~0ull : (1ull << 8 * event.size) - 1;
    expected.push_back(event);
  }
  const auto log = std::make_unique<ThreadLog>();
  log->Open(recorder.segment().view(), 1);
  for (std::uint64_t i = 0; i < kEvents;) {
    const auto count = static_cast<std::uint32_t>(std::min(random() % 65, kEvents - i));
    std::vector<Event> events(expected.begin() + static_cast<std::ptrdiff_t>(i),
                              expected.begin() + static_cast<std::ptrdiff_t>(i + count));
    std::vector<const Event*> pointers;
    std::vector<std::uint32_t> stacks;
    for (Event& event : events) {
      stacks.push_back(event.stack);
      event.stack = 99;  // another numbering
      pointers.push_back(&event);
    }
    ASSERT_TRUE(recorder.MakeRoom(*log, (count + 1) * kMaxEventRecordBytes, count + 1));
    log->AppendOrdered(pointers.data(), stacks.data(), count);
    i += count;
    if (i < kEvents) log->AppendOrdered(expected[i++]);
  }
  log->Finish();
  ASSERT_TRUE(recorder.Stop().ok());
  LogIndex index;
  ASSERT_TRUE(index.Open(scratch_ / "log").ok());
  const auto read = ReadAll(index);
  ASSERT_EQ(read.size(), kEvents);
  for (std::uint64_t i = 0; i < kEvents; ++i) {
    ASSERT_TRUE(read[i].event == expected[i]) << i;
    ASSERT_EQ(read[i].sequence, i + 1);
  }
}

TEST_F(LogRecordingTest, MemoryIsBoundedAndDroppingIsTold) {
  LogSegment segment;
  SegmentOptions options;
  options.memory_bytes = 64 << 10;
  options.chunk_bytes = 4096;
  const std::string name = "trapline-test-drop-" + std::to_string(getpid());
  ASSERT_TRUE(segment.Create(name, options, {}).ok());
  EXPECT_LT(segment.header().total_bytes,
            options.memory_bytes + options.metadata_bytes + (64 << 10));
  // Nobody drains: after the memory is used up, events are lost.
  auto log = std::make_unique<ThreadLog>();
  log->Open(segment.view(), 1);
  std::uint64_t stored = 0;
  std::uint64_t lost = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    if (log->Reserve()) {
      log->AppendOrdered(NumberedEvent(1, stored++));
    } else {
      log->Lose();
      ++lost;
    }
  }
  log->Finish();
  EXPECT_GT(stored, 1000U);
  EXPECT_GT(lost, 1000U);
  LogDrain drain(segment);
  ASSERT_TRUE(drain.Open(scratch_ / "log").ok());
  // Room again: what comes now is recorded, but known to stand behind a gap.
  drain.Round(true);
  ASSERT_TRUE(log->Reserve());
  log->AppendOrdered(NumberedEvent(1, stored));
  log->Finish();
  segment.header().closed.store(1);
  ASSERT_TRUE(drain.Run(never_).ok());
  LogSegment::Remove(name);
  LogIndex index;
  ASSERT_TRUE(index.Open(scratch_ / "log").ok());
  EXPECT_EQ(index.end().lost_events, lost);
  EXPECT_NE(index.missing().find("dropped"), std::string::npos);
  EXPECT_EQ(index.complete_up_to(), stored);
  EXPECT_EQ(CheckNumbered(index, kLastSequence)[1], stored + 1);
  EXPECT_EQ(CheckNumbered(index, index.complete_up_to())[1], stored);
}

TEST_F(LogRecordingTest, DrainWithAFullDiskDoesNotStopTheWorkload) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    LogRecorder recorder;
    RecorderOptions options;
    options.segment.memory_bytes = 1 << 20;
    bool as_expected = recorder.Start(scratch_ / "log", {}, options).ok();
    const rlimit limit{50'000, 50'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    Produce(recorder.segment(), 0, 500'000, 0);
    const Status status = recorder.Stop();
    as_expected =
        as_expected && !status.ok() && status.message().find("make room") != std::string::npos;
    _exit(as_expected ? 0 : 1);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  LogIndex index;
  ASSERT_TRUE(index.Open(scratch_ / "log").ok());
  EXPECT_EQ(index.valid_bytes(), index.file_bytes());
  EXPECT_GT(CheckNumbered(index, kLastSequence)[0], 1000U);
}

// One recording with the producer and the drain as processes, of which some are killed.
class KillTest : public LogRecordingTest {
 protected:
  static constexpr std::uint64_t kEndless = ~std::uint64_t{0};

  // round(random) kills what each recording is made of, and adds to events_.
  template <typename Round>
  void ForEachRecording(std::uint64_t seed, Round round) {
    std::mt19937_64 random(seed);
    for (std::uint64_t i = 0; i < TestCount("TRAPLINE_KILLS", 8); ++i) {
      Start(i);
      round(random);
      LogSegment::Remove(name_);
      unlink(path_.c_str());
      if (HasFailure()) return;
    }
    EXPECT_GT(events_, 0U);
  }

  void Start(std::uint64_t seed) {
    name_ = "trapline-test-kill-" + std::to_string(getpid()) + "-" + std::to_string(seed);
    path_ = scratch_ / ("log" + std::to_string(seed));
    LogSegment::Remove(name_);
    producer_ = fork();
    if (producer_ == 0) {
      LogSegment segment;
      SegmentOptions options;
      options.memory_bytes = 256 << 10;
      options.chunk_bytes = 8192;
      if (!segment.Create(name_, options, {}).ok()) _exit(1);
      std::vector<std::thread> threads;
      for (ThreadId thread = 0; thread < 3; ++thread) {
        threads.emplace_back(
            [&segment, thread] { Produce(segment, thread, kEndless, thread == 2 ? 5 : 0); });
      }
      for (std::thread& thread : threads) thread.join();
      _exit(0);
    }
    for (int i = 0; i < 5000 && !segment_.Attach(name_).ok(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    drain_ = StartDrain();
  }

  pid_t StartDrain() {
    const pid_t drain = fork();
    if (drain != 0) return drain;
    LogSegment segment;
    if (!segment.Attach(name_).ok()) _exit(1);
    LogDrain log_drain(segment);
    if (!log_drain.Open(path_).ok()) _exit(2);
    _exit(log_drain.Run(never_, std::chrono::microseconds(200)).ok() ? 0 : 3);
  }

  static void Kill(pid_t process) {
    kill(process, SIGKILL);
    int state = 0;
    waitpid(process, &state, 0);
  }
  static int WaitFor(pid_t process) {
    int state = 0;
    waitpid(process, &state, 0);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  }

  // When the producer is gone, its drain ends with a log that says so.
  void OpenWhenDrained(LogIndex& index) {
    ASSERT_EQ(WaitFor(drain_), 0);
    ASSERT_TRUE(index.Open(path_).ok());
    EXPECT_TRUE(index.finished());
  }

  // What the log holds, whatever happened to it, is without a gap up to where it is said to be
  // complete, and its blocks without a gap in each thread.
  std::uint64_t Check() {
    LogIndex index;
    const Status status = index.Open(path_);
    if (!status.ok()) return 0;  // the drain died before it wrote the first bytes
    EXPECT_FALSE(index.damaged()) << index.missing();
    std::uint64_t sum = 0;
    for (const auto& [thread, count] : CheckNumbered(index, kLastSequence)) sum += count;
    EXPECT_EQ(sum, index.events());
    CheckNumbered(index, index.complete_up_to());
    // Threads 0 and 1 give every event a number of its own: up to there none may be missing.
    Sequence ordered = 0;
    std::map<ThreadId, Sequence> latest;
    for (const RecordedEvent& recorded : ReadAll(index, index.complete_up_to())) {
      if (recorded.sequence != latest[recorded.event.thread]) ++ordered;
      latest[recorded.event.thread] = recorded.sequence;
    }
    const Sequence complete = std::min(index.complete_up_to(), segment_.header().sequence.load());
    // A number may have been drawn by each thread but not used before it was killed.
    EXPECT_GE(ordered + 3, complete);
    return index.events();
  }

  void Pause(std::mt19937_64& random) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
  }

  std::string name_;
  std::string path_;
  LogSegment segment_;
  pid_t producer_ = -1;
  pid_t drain_ = -1;
  std::uint64_t events_ = 0;  // what Check found
};

TEST_F(KillTest, ProducerKilled) {
  ForEachRecording(1, [&](std::mt19937_64& random) {
    Pause(random);
    Kill(producer_);
    LogIndex index;
    ASSERT_NO_FATAL_FAILURE(OpenWhenDrained(index));
    EXPECT_NE(index.missing().find("killed"), std::string::npos);
    // Everything that was committed is there.
    EXPECT_GE(index.complete_up_to() + 3, segment_.header().sequence.load());
    events_ += Check();
  });
}

TEST_F(KillTest, DrainKilledAndReplaced) {
  ForEachRecording(2, [&](std::mt19937_64& random) {
    for (int n = 0; n < 2; ++n) {
      Pause(random);
      Kill(drain_);
      events_ += Check();
      drain_ = StartDrain();
    }
    Pause(random);
    Kill(producer_);
    LogIndex index;
    ASSERT_NO_FATAL_FAILURE(OpenWhenDrained(index));
    events_ += Check();
  });
}

TEST_F(KillTest, BothKilledAndTheRestSaved) {
  ForEachRecording(3, [&](std::mt19937_64& random) {
    Pause(random);
    const bool producer_first = random() % 2 == 0;
    Kill(producer_first ? producer_ : drain_);
    Kill(producer_first ? drain_ : producer_);
    const std::uint64_t before = Check();
    LogIndex index;
    const bool finished = index.Open(path_).ok() && index.finished();
    // What is still in shared memory is not lost either.
    ASSERT_EQ(WaitFor(StartDrain()), finished ? 2 : 0);
    const std::uint64_t after = Check();
    EXPECT_GE(after, before);
    events_ += after;
  });
}

}  // namespace
}  // namespace trapline
