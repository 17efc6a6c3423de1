// Random executions through the agent's own search for repeats (guest-agent/repeats.h): what it
// does not tell, or tells later, must not change what FastTrack finds. TRAPLINE_TRACES sets how
// many, TRAPLINE_FIRST_TRACE the seed of the first one.
#include "guest-agent/repeats.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "guest-agent/agent.h"
#include "tests/detector/trace_builder.h"
#include "tests/support/reference.h"
#include "tests/support/trace_generator.h"
#include "translator/access_site.h"

namespace trapline {
namespace {

using agent::QueuedEvent;
using agent::Repeats;

// The memory that the agent has at fixed addresses, mapped once for all tests.
class AgentMemory {
 public:
  AgentMemory() {
    Map(TRAPLINE_REPEATS, TRAPLINE_CACHE_END);
    Map(TRAPLINE_SHARED_PAGE, TRAPLINE_SHARED_PAGE + 4096);
    Map(TRAPLINE_THREAD_PAGE, TRAPLINE_THREAD_PAGE + 4096);
    Map(TRAPLINE_EVENT_QUEUE,
        TRAPLINE_EVENT_QUEUE + TRAPLINE_QUEUE_ENTRIES * TRAPLINE_QUEUE_ENTRY_SIZE);
    Map(TRAPLINE_CACHE_SITES, TRAPLINE_CACHE_DATA_END);
  }
  std::uint64_t& next_event() { return *reinterpret_cast<std::uint64_t*>(TRAPLINE_SHARED_PAGE); }
  agent::ThreadPage& page() { return *reinterpret_cast<agent::ThreadPage*>(TRAPLINE_THREAD_PAGE); }
  const QueuedEvent* queue() { return reinterpret_cast<QueuedEvent*>(TRAPLINE_EVENT_QUEUE); }
  // One for each kind of access, below 4 GiB as the agent wants it.
  AccessSite* sites() { return reinterpret_cast<AccessSite*>(TRAPLINE_CACHE_SITES); }

 private:
  static void Map(std::uint64_t start, std::uint64_t end) {
    start &= ~std::uint64_t{4095};
    void* const memory = mmap(
        reinterpret_cast<void*>(start), (end - start + 4095) & ~4095ull, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory != reinterpret_cast<void*>(start)) std::abort();
  }
};

AgentMemory& Memory() {
  static AgentMemory memory;
  return memory;
}

// Feeds a detector with what the agent tells of an execution, as Tracking does.
class Execution {
 public:
  // `patience`: a plain access is granted after so many events.
  explicit Execution(unsigned patience)
      : patience_(patience), detector_(MakeDetector("fasttrack", {.all_races = true})) {
    Memory().next_event() = 1;
    auto& repeats = Repeats();
    repeats.enabled = 1;
    // What the execution before has left, without touching all of it.
    for (const std::uint32_t index : touched_) {
      repeats.use[index] = 0;
      for (auto& table : repeats.tables) table[agent::LineOf(index)] = {};
    }
    touched_.clear();
    for (unsigned slot = 0; slot < agent::kRepeatThreads; ++slot) repeats.threads[slot] = slot + 1;
    Memory().page().repeats = 0;
  }

  void Do(const Event& event) {
    for (; !grants_.empty() && grants_.front().first <= events_; grants_.erase(grants_.begin()))
      Grant(grants_.front().second);
    ++events_;
    if (IsAccess(event.kind)) {
      Access(event);
    } else {
      if (event.kind == EventKind::kClearHistory) Forget(event);
      if (event.kind == EventKind::kThreadEnd) TellAll(event.thread);
      Tell(event);
    }
    if (IsAccess(event.kind) ? IsAtomic(event.kind) : true) {
      // Whatever orders threads has a number of its own.
      ++Memory().next_event();
      for (ThreadId thread = 0; thread < agent::kRepeatThreads; ++thread) Moment(thread);
    }
  }

  Detector& detector() { return *detector_; }
  std::uint64_t repeats() const { return Memory().page().repeats; }

 private:
  void Tell(const Event& event) { detector_->OnEvent(event, index_++); }

  void Moment(ThreadId thread) {
    Event moment = MakeEvent(EventKind::kMoment, thread);
    moment.aux = Memory().next_event();
    Tell(moment);
  }

  void Access(const Event& event) {
    AccessSite site;
    site.rip = event.ip;
    site.size = static_cast<std::uint32_t>(event.size);
    site.write = IsWrite(event.kind);
    site.read = !site.write;
    site.atomic = IsAtomic(event.kind);
    AccessSite& placed = Memory().sites()[site_++ % 65536];
    placed = site;
    agent::ForEachBlock(event.address, event.size,
                        [&](std::uint32_t index) { touched_.insert(index); });
    auto& page = Memory().page();
    page.repeat_user = event.thread + 1;
    page.queue_head = page.queue_tail = 0;
    const bool repeats = trapline_agent_repeats(&placed, event.address, nullptr);
    for (std::uint64_t i = 0; i < page.queue_head; ++i) Earlier(Memory().queue()[i]);
    if (repeats) return;
    Tell(event);
    if (IsPlainAccess(event.kind)) grants_.emplace_back(events_ + patience_, event);
  }

  void Earlier(const QueuedEvent& queued) {
    const bool write = (queued.kind & TRAPLINE_QUEUED_REPEAT_WRITE) != 0;
    Event event =
        MakeEvent(write ? EventKind::kEarlierWrite : EventKind::kEarlierRead,
                  static_cast<ThreadId>(queued.kind >> 32 & (kMaxThreads - 1)), queued.address,
                  queued.kind >> TRAPLINE_QUEUED_REPEAT_SIZE & 0x1f, queued.ip);
    event.aux = queued.size;
    Tell(event);
  }

  void TellAll(ThreadId thread) {
    for (const std::uint32_t index : touched_) {
      agent::RepeatLine& line = Repeats().tables[thread][agent::LineOf(index)];
      if (line.use != Repeats().use[index]) continue;
      agent::TakeRepeats(thread, line, [&](unsigned, const agent::Repeat& repeat) {
        Event event = MakeEvent(repeat.write ? EventKind::kEarlierWrite : EventKind::kEarlierRead,
                                thread, repeat.address, repeat.size);
        event.aux = repeat.moment;
        Tell(event);
      });
    }
  }

  static void Grant(const Event& event) {
    const auto size = static_cast<std::uint32_t>(event.size);
    if (!agent::MayRepeat(event.address, size)) return;
    const std::uint64_t block = event.address / agent::kRepeatBlock;
    agent::RepeatLine& line = Repeats().tables[event.thread][agent::LineOf(agent::IndexOf(block))];
    if ((line.block & agent::kBlockNumber) == block) {
      line.block |= agent::WordsOf(event.address, size, event.kind == EventKind::kWrite)
                    << agent::kGrantedShift;
    }
  }

  // Memory is given out anew: nobody uses it.
  static void Forget(const Event& event) {
    agent::ForEachBlock(event.address, event.size, [](std::uint32_t index) {
      Repeats().use[index] = (Repeats().use[index] | agent::kBlockUseMask) + 1;
      touched_.insert(index);
      for (unsigned slot = 0; slot < agent::kRepeatThreads; ++slot) {
        for (auto& moments : Repeats().tables[slot][agent::LineOf(index)].moments) {
          for (std::uint32_t& moment : moments) moment = 0;
        }
      }
    });
  }

  inline static std::set<std::uint32_t> touched_;
  unsigned patience_;
  std::unique_ptr<Detector> detector_;
  std::vector<std::pair<std::uint64_t, Event>> grants_;
  std::uint64_t events_ = 0, index_ = 0, site_ = 0;
};

std::set<std::uint64_t> Bytes(const Detector& detector) {
  std::set<std::uint64_t> bytes;
  for (const auto& [byte, event] : FirstRaces(detector)) bytes.insert(byte);
  return bytes;
}

std::uint64_t FromEnvironment(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(Repeats, FastTrackFindsTheSameRaces) {
  const std::uint64_t first = FromEnvironment("TRAPLINE_FIRST_TRACE", 1);
  const std::uint64_t last = first + FromEnvironment("TRAPLINE_TRACES", 20000);
  std::uint64_t repeats = 0, racy = 0;
  for (std::uint64_t seed = first; seed < last; ++seed) {
    TraceOptions options;
    options.seed = seed;
    options.events = 40 + static_cast<int>(seed % 9) * 40;
    options.max_threads = 2 + static_cast<int>(seed % 4);
    options.mutexes = 1 + static_cast<int>(seed % 3);
    options.keys = static_cast<int>(seed / 3 % 2);
    options.atomics = seed / 5 % 3 == 0;
    options.remaps = false;
    options.overlaps = seed / 7 % 2 == 0;
    options.words = 1 + static_cast<int>(seed / 11 % 8);
    const auto fails = [&](const std::vector<Event>& trace) {
      Execution execution(static_cast<unsigned>(seed % 4));
      for (const Event& event : trace) execution.Do(event);
      repeats += execution.repeats();
      const auto truth = Bytes(*RunOn("fasttrack", trace));
      racy += truth.size();
      return truth != Bytes(execution.detector());
    };
    const std::vector<Event> trace = GenerateTrace(options);
    if (!fails(trace)) continue;
    const std::vector<Event> small = ShrinkTrace(trace, fails);
    FAIL() << "seed " << seed << "\n" << PrintTrace(small);
  }
  // Else the test tests nothing.
  EXPECT_GT(repeats, (last - first) / 2);
  EXPECT_GT(racy, (last - first) / 10);
}

TEST(Repeats, CleanedMemoryHasNoPast) {
  Execution execution(0);
  execution.Do(Fork(0, 1));
  for (int i = 0; i < 4; ++i) {
    execution.Do(Write(0, 0x1000, 8, 1));
    execution.Do(Release(0, 7));
  }
  EXPECT_EQ(execution.repeats(), 3u);
  execution.Do(Clear(0, 0x1000, 16));
  execution.Do(Write(1, 0x1000, 8, 2));
  EXPECT_TRUE(execution.detector().races().empty());
  execution.Do(Write(0, 0x1000, 8, 3));
  EXPECT_EQ(execution.detector().races().size(), 1u);
}

// The last of a thread's accesses is the one that races; the others are before what the other does.
TEST(Repeats, TheLastOneCounts) {
  Execution execution(0);
  execution.Do(Fork(0, 1));
  for (int i = 0; i < 3; ++i) {
    execution.Do(Write(0, 0x1000, 4, 1));
    execution.Do(Release(0, 7));
  }
  execution.Do(Acquire(1, 7));
  execution.Do(Write(0, 0x1000, 4, 5));
  EXPECT_EQ(execution.repeats(), 3u);
  execution.Do(Read(1, 0x1000, 4, 2));
  ASSERT_EQ(execution.detector().races().size(), 1u);
  EXPECT_EQ(execution.detector().races()[0].first.ip, 5u);
  EXPECT_EQ(execution.detector().races()[0].second.ip, 2u);
}

}  // namespace
}  // namespace trapline
