// Random executions through the agent's and the monitor's own search for repeats
// (guest-agent/repeats.h, hypervisor/repeat_tables.h): what it
// does not tell, or tells later, must not change what FastTrack finds, nor, once it is put where it
// belongs, what other detectors find. TRAPLINE_TRACES sets how many, TRAPLINE_FIRST_TRACE the seed
// of the first one.
#include "guest-agent/repeats.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "detector/moment_history.h"
#include "guest-agent/agent.h"
#include "guest-agent/fast_repeats.h"
#include "hypervisor/repeat_tables.h"
#include "replay/late_repeats.h"
#include "tests/detector/trace_builder.h"
#include "tests/support/reference.h"
#include "tests/support/trace_generator.h"
#include "translator/access_site.h"
#include "translator/cache_thread.h"

namespace trapline {
namespace {

using agent::QueuedEvent;
using agent::Repeats;

// The memory that the agent has at fixed addresses, mapped once for all tests.
class AgentMemory {
 public:
  AgentMemory() {
    Map(TRAPLINE_REPEATS, TRAPLINE_CACHE_END);
    Map(TRAPLINE_REPEAT_TABLES, TRAPLINE_REPEAT_TABLES_END);
    Map(TRAPLINE_SHARED_PAGE, TRAPLINE_SHARED_PAGE + 4096);
    Map(TRAPLINE_THREAD_PAGE, TRAPLINE_THREAD_PAGE + 4096);
    Map(TRAPLINE_EVENT_QUEUE,
        TRAPLINE_EVENT_QUEUE + TRAPLINE_QUEUE_ENTRIES * TRAPLINE_QUEUE_ENTRY_SIZE);
    Map(TRAPLINE_CACHE_SITES, TRAPLINE_CACHE_DATA_END);
    Map(TRAPLINE_CACHE_THREAD, TRAPLINE_CACHE_THREAD + sizeof(CacheThread));
    for (std::uint64_t i = 0; i < 8; ++i) cache_thread().signature[i] = (8 + i) << 47;
    void* const code = mmap(nullptr, kCodeSize, PROT_READ | PROT_WRITE | PROT_EXEC,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) std::abort();
    code_ = static_cast<unsigned char*>(code);
    unsigned char* at = code_;
    for (unsigned log2 = 0; log2 <= 4; ++log2) {
      for (const bool write : {false, true}) {
        const auto fast = agent::FastRepeat(1u << log2, write);
        fast_[log2][write] = at;
        at = std::ranges::copy(fast, at).out;
        // Where the slow path would follow: movb $1, missed; ret $8
        const auto missed = reinterpret_cast<std::uint64_t>(&this->missed());
        for (const unsigned byte : {0xc6u, 0x04u, 0x25u}) *at++ = static_cast<unsigned char>(byte);
        for (unsigned i = 0; i < 4; ++i) *at++ = static_cast<unsigned char>(missed >> 8 * i);
        for (const unsigned byte : {0x01u, 0xc2u, 0x08u, 0x00u})
          *at++ = static_cast<unsigned char>(byte);
      }
    }
  }
  // What the code cache does before its slow path. False: that follows.
  bool FastRepeat(const AccessSite* site, std::uint64_t address) {
    const unsigned log2 = std::countr_zero(site->size);
    if (!std::has_single_bit(site->size) || log2 > 4 || site->atomic) return false;
    cache_thread().access_address = address;
    missed() = 0;
    asm volatile(
        "sub $128, %%rsp\n\t"  // the red zone
        "push %0\n\t"
        "call *%1\n\t"
        "add $128, %%rsp"
        :
        : "r"(site), "r"(fast_[log2][site->write])
        : "memory", "cc");
    if (missed() != 0) return false;
    const auto cell =
        cache_thread()
            .filter[site->write ? 1 : 0][CacheThread::FilterOffset(address, site->size) / 8];
    EXPECT_EQ(cell, cache_thread().signature[log2] + address);
    return true;
  }
  CacheThread& cache_thread() { return *reinterpret_cast<CacheThread*>(TRAPLINE_CACHE_THREAD); }
  std::uint64_t& next_event() { return *reinterpret_cast<std::uint64_t*>(TRAPLINE_SHARED_PAGE); }
  agent::ThreadPage& page() { return *reinterpret_cast<agent::ThreadPage*>(TRAPLINE_THREAD_PAGE); }
  const QueuedEvent* queue() { return reinterpret_cast<QueuedEvent*>(TRAPLINE_EVENT_QUEUE); }
  // One for each kind of access, below 4 GiB as the agent wants it.
  AccessSite* sites() { return reinterpret_cast<AccessSite*>(TRAPLINE_CACHE_SITES); }

 private:
  // Below 2 GiB.
  volatile unsigned char& missed() {
    return *reinterpret_cast<volatile unsigned char*>(TRAPLINE_SHARED_PAGE + 64);
  }

  static constexpr std::size_t kCodeSize = 16384;
  unsigned char* code_ = nullptr;
  const unsigned char* fast_[5][2] = {};

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

constexpr std::uint32_t kFewLines = agent::kLinesInPage;  // of a table, at least

// Feeds a detector with what the agent tells of an execution, as Tracking does.
class Execution {
 public:
  // An event is handled when `lag` later ones have happened, or when it must be. Each `watched`th
  // access is seen by the monitor, not by the agent; 0: none. Tables have `lines` at first. The
  // detector `forgets` all that it may as soon as it can.
  explicit Execution(unsigned lag, unsigned watched = 0,
                     std::uint32_t lines = RepeatTables::kFirstLines, bool forgets = false)
      : lag_(lag),
        watched_(watched),
        detector_(
            MakeDetector("fasttrack", {.all_races = true, .condense_from = forgets ? 1u : 0u})),
        tables_([] { return Memory().next_event(); },
                [this](const RepeatedAccess& access) { Earlier(access); }) {
    Memory().next_event() = 1;
    auto& repeats = Repeats();
    std::fill_n(&repeats.used[0][0], sizeof repeats.used / sizeof repeats.used[0][0], 0);
    // What the execution before has left, without touching all of it.
    for (const std::uint32_t index : touched_) {
      repeats.use[index] = 0;
      for (unsigned slot = 0; slot < agent::kRepeatThreads; ++slot) {
        agent::RepeatLine* const table = agent::TableOf(slot);
        for (std::uint32_t size = kFewLines; size <= agent::kRepeatLines; size *= 2) {
          table[agent::LineOf(index, size - 1)] = {};
          for (unsigned word = 0; word < agent::kRepeatPieces; ++word)
            table[agent::BytewiseLineOf(index, word, size - 1)] = {};
        }
      }
    }
    touched_.clear();
    sites_.clear();
    tables_.Start(0, lines);
    tables_.Weigh(0, 0);
    for (ThreadId thread = 0; thread < agent::kRepeatThreads; ++thread)
      slots_[thread] = tables_.Add(pages_[thread], thread);
  }

  // Reads that end a peace may be told of after other threads' reads that follow.
  void Stall() { stalls_ = true; }

  void Do(const Event& event) {
    if (event.kind != EventKind::kRead || event.thread == stalled_by_) EndStall();
    if (event.kind == EventKind::kThreadEnd) {
      HandleAll();
      tables_.Remove(*slots_[event.thread]);
    }
    const bool access = IsAccess(event.kind);
    if (access) Touches(event.address, event.size);
    if (access && watched_ != 0 && ++accesses_ % watched_ == 0) {
      SeenByMonitor(event);
    } else if (access) {
      SeenByAgent(event);
    } else {
      // Whatever orders threads has a number of its own.
      if (event.kind == EventKind::kClearHistory) EndPeace(event);
      pending_.push_back({event, Memory().next_event()++, nullptr});
    }
    while (pending_.size() > lag_) HandleFirst();
  }

  void EndStall() {
    for (Pending& late : stalled_) {
      late.number = late.plain != nullptr ? Memory().next_event() : Memory().next_event()++;
      pending_.push_back(late);
    }
    stalled_.clear();
    stalled_by_ = kNobody;
  }

  // `thread` gives a block back, which counts as writing it.
  void Free(ThreadId thread, std::uint64_t address, std::uint64_t size) {
    Event event = MakeEvent(EventKind::kClearHistory, thread, address, size);
    EndPeace(event);
    pending_.push_back({event, Memory().next_event()++, nullptr, true});
    while (pending_.size() > lag_) HandleFirst();
  }

  void HandleAll() {
    EndStall();
    while (!pending_.empty()) HandleFirst();
    handled_ = Memory().next_event();
  }
  void TellAll() { tables_.TellAll(handled_); }
  bool OnMoment(ThreadId thread) { return tables_.OnMoment(thread, handled_); }
  bool IsFull(ThreadId thread) { return tables_.IsFull(*slots_[thread]); }
  bool IsTableUsed(ThreadId thread) const {
    return std::ranges::any_of(Repeats().used[*slots_[thread]],
                               [](std::uint64_t pages) { return pages != 0; });
  }
  void Grow(ThreadId thread) { tables_.Grow(*slots_[thread], handled_); }
  std::uint32_t LinesOf(ThreadId thread) const { return agent::LineMaskOf(*slots_[thread]) + 1; }
  void Weigh(std::uint64_t checks) { tables_.Weigh(checks, handled_); }

  // The thread's last access was none.
  void Untell(const Event& event) {
    RepeatTables::Untell(*slots_[event.thread], *SiteOf(event), event.address);
  }

  // From now on without the code cache's part.
  void OnlySlowly() { fast_ = false; }

  Detector& detector() { return *detector_; }
  const std::vector<Event>& told() const { return told_; }
  std::uint64_t fast_repeats() const { return fast_repeats_; }
  std::uint64_t not_fast_repeats() const { return not_fast_repeats_; }
  std::uint64_t repeats() const { return tables_.count(); }

 private:
  // An event in a queue.
  struct Pending {
    Event event;
    std::uint64_t number;     // its own, or of the next one that has one
    const AccessSite* plain;  // of a plain access
    bool frees = false;
  };

  void Tell(const Event& event) {
    told_.push_back(event);
    started_[event.thread] = true;
    if (event.kind == EventKind::kFork) started_[event.other] = true;
    detector_->OnEvent(event, index_++);
  }

  void Moments(std::uint64_t from) {
    for (ThreadId thread = 0; thread < agent::kRepeatThreads; ++thread) {
      if (!started_[thread]) continue;
      Event moment = MakeEvent(EventKind::kMoment, thread);
      moment.aux = from;
      Tell(moment);
    }
  }

  void TellEndOfEpoch(Event event, std::uint64_t moment) {
    if (IsReleaseOfLock(event.kind)) {
      event.aux = moment;
      Tell(event);
    } else {
      Tell(event);
      Moments(moment);
    }
  }

  const AccessSite* SiteOf(const Event& event) {
    auto& site = sites_[{event.ip, event.size, event.kind}];
    if (site == nullptr) {
      site = &Memory().sites()[sites_.size()];
      *site = {};
      site->rip = event.ip;
      site->size = static_cast<std::uint32_t>(event.size);
      site->write = IsWrite(event.kind);
      site->read = !site->write;
      site->atomic = IsAtomic(event.kind);
    }
    return site;
  }

  void Touches(std::uint64_t address, std::uint64_t size) {
    agent::ForEachBlock(address, size, [](std::uint32_t index) { touched_.insert(index); });
  }

  void SeenByAgent(const Event& event) {
    const AccessSite* const site = SiteOf(event);
    agent::ThreadPage& page = Memory().page();
    page = pages_[event.thread];
    page.queue_head = page.queue_tail = 0;
    const bool fast = fast_ && Memory().FastRepeat(site, event.address);
    const bool repeats = fast || trapline_agent_repeats(site, event.address, nullptr);
    fast_repeats_ += fast ? 1 : 0;
    not_fast_repeats_ += repeats && !fast ? 1 : 0;
    pages_[event.thread].repeats = page.repeats;
    pages_[event.thread].repeats_missed = page.repeats_missed;
    pages_[event.thread].queue_head += page.queue_head + (repeats ? 0 : 1);
    const bool stall =
        stalls_ && event.kind == EventKind::kRead && page.queue_head != 0 && stalled_by_ == kNobody;
    if (stall) stalled_by_ = event.thread;
    auto& queue = stall ? stalled_ : pending_;
    const auto take_queued = [&] {
      for (std::uint64_t i = 0; i < page.queue_head; ++i) {
        const QueuedEvent& queued = Memory().queue()[i];
        const bool write = (queued.kind & TRAPLINE_QUEUED_REPEAT_WRITE) != 0;
        Event earlier =
            MakeEvent(write ? EventKind::kEarlierWrite : EventKind::kEarlierRead,
                      static_cast<ThreadId>(queued.kind >> 32 & (kMaxThreads - 1)), queued.address,
                      queued.kind >> TRAPLINE_QUEUED_REPEAT_SIZE & 0x1f, queued.ip);
        earlier.aux = queued.size;
        queue.push_back({earlier, queued.sequence, nullptr});
      }
      page.queue_head = page.queue_tail = 0;
    };
    take_queued();
    if (repeats) return;
    const bool plain = IsPlainAccess(event.kind);
    const std::uint64_t number = plain ? Memory().next_event() : Memory().next_event()++;
    queue.push_back({event, number, plain ? site : nullptr});
    if (!site->atomic && !site->write) return;
    trapline_agent_queued(site, event.address);
    take_queued();
  }

  void SeenByMonitor(const Event& event) {
    HandleAll();
    const auto touch = IsAtomic(event.kind)  ? IsWrite(event.kind) ? agent::Touch::kAtomicWrite
                                                                   : agent::Touch::kAtomicRead
                       : IsWrite(event.kind) ? agent::Touch::kWrite
                                             : agent::Touch::kRead;
    tables_.Touch(static_cast<std::uint32_t>(pages_[event.thread].repeat_user), event.address,
                  event.size, touch, [this](const RepeatedAccess& access) {
                    if (access.moment >= handled_) handled_ = ++Memory().next_event();
                    Earlier(access);
                  });
    if (IsPlainAccess(event.kind)) {
      Tell(event);
    } else {
      TellEndOfEpoch(event, ++Memory().next_event());
    }
  }

  void Earlier(const RepeatedAccess& access) {
    Event event = MakeEvent(access.write ? EventKind::kEarlierWrite : EventKind::kEarlierRead,
                            access.thread, access.address, access.size, access.ip);
    event.aux = access.moment;
    Tell(event);
  }

  void HandleFirst() {
    Pending first = pending_.front();
    pending_.pop_front();
    handled_ = std::max(handled_, first.number + (first.plain == nullptr ? 1 : 0));
    if (first.event.kind == EventKind::kClearHistory) {
      tables_.OnBlock(first.event.thread, first.frees, first.event.address,
                      first.event.address + first.event.size, first.number);
      if (first.frees) first.event.kind = EventKind::kWrite;
    }
    if (first.event.kind == EventKind::kJoinBegin) {
      tables_.TellThose(*slots_[first.event.thread], handled_);
      Tell(first.event);
    } else if (first.plain == nullptr) {
      TellEndOfEpoch(first.event, first.number + 1);
    } else {
      Tell(first.event);
      if (first.plain->write)
        tables_.Grant(*slots_[first.event.thread], *first.plain, first.event.address);
    }
  }

  // What the agent does when memory is given out anew: nobody uses it.
  void EndPeace(const Event& event) {
    Touches(event.address, event.size);
    agent::ForEachBlock(event.address, event.size, [](std::uint32_t index) {
      Repeats().use[index] = (Repeats().use[index] | agent::kBlockUseMask) + 1;
    });
  }

  inline static std::set<std::uint32_t> touched_;
  inline static std::map<std::tuple<std::uint64_t, std::uint64_t, EventKind>, AccessSite*> sites_;
  unsigned lag_, watched_, accesses_ = 0;
  std::unique_ptr<Detector> detector_;
  std::vector<Event> told_;
  std::array<agent::ThreadPage, agent::kRepeatThreads> pages_{};
  RepeatTables tables_;
  std::array<std::optional<unsigned>, agent::kRepeatThreads> slots_{};
  std::array<bool, agent::kRepeatThreads> started_{};
  std::deque<Pending> pending_, stalled_;
  static constexpr ThreadId kNobody = kMaxThreads;
  ThreadId stalled_by_ = kNobody;
  bool stalls_ = false;
  std::uint64_t handled_ = 0, index_ = 0, fast_repeats_ = 0, not_fast_repeats_ = 0;
  bool fast_ = true;
};

std::set<std::uint64_t> Bytes(const Detector& detector) {
  std::set<std::uint64_t> bytes;
  for (const auto& [byte, event] : FirstRaces(detector)) bytes.insert(byte);
  return bytes;
}

// Events as a log.
class TraceLog {
 public:
  explicit TraceLog(std::span<const Event> events) : events_(events) {}
  std::size_t Read(Event* events, std::size_t capacity) {
    const std::size_t count = std::min(capacity, events_.size());
    std::copy_n(events_.begin(), count, events);
    events_ = events_.subspan(count);
    return count;
  }
  const Status& status() const { return status_; }

 private:
  std::span<const Event> events_;
  Status status_;
};

// What was told with late repeats put in their places.
std::vector<Event> Straight(const std::vector<Event>& told) {
  LateRepeats late(16);  // the rest in the file
  late.Note(told);
  EXPECT_TRUE(late.Finish().ok());
  TraceLog log(told);
  StraightReader<TraceLog> reader(log, late);
  std::vector<Event> straight(told.size() + 1);
  straight.resize(reader.Read(straight.data(), straight.size()));
  EXPECT_TRUE(reader.status().ok());
  return straight;
}

TEST(Repeats, FastTrackFindsTheSameRaces) {
  const std::uint64_t first = FromEnvironment("TRAPLINE_FIRST_TRACE", 1);
  const std::uint64_t last = first + FromEnvironment("TRAPLINE_TRACES", 20000);
  std::uint64_t repeats = 0, racy = 0, fast = 0, events = 0, grown = 0;
  for (std::uint64_t seed = first; seed < last; ++seed) {
    TraceOptions options;
    options.seed = seed;
    options.events = 40 + static_cast<int>(seed % 9) * 40;
    options.max_threads = 2 + static_cast<int>(seed % 4);
    options.mutexes = 1 + static_cast<int>(seed % 3);
    options.keys = static_cast<int>(seed / 3 % 2);
    options.atomics = seed / 5 % 3 == 0;
    options.locations = seed % 5 == 0 ? 1 : 3;
    options.overlaps = seed / 7 % 2 == 0;
    options.words = 1 + static_cast<int>(seed / 11 % 8);
    const auto fails = [&](const std::vector<Event>& trace) {
      const bool grows = seed % 2 == 1;
      Execution execution(static_cast<unsigned>(seed % 13), static_cast<unsigned>(seed / 13 % 9),
                          grows ? kFewLines : RepeatTables::kFirstLines, seed % 16 < 8);
      if (seed % 3 == 0) execution.OnlySlowly();
      if (seed % 4 == 0) execution.Stall();
      for (const Event& event : trace) {
        execution.Do(event);
        if (seed % 17 == 0) execution.TellAll();
        if (grows && ++events % 29 == 0 && event.kind != EventKind::kThreadEnd) {
          execution.Grow(event.thread);
          grown += execution.LinesOf(event.thread) > kFewLines ? 1 : 0;
        }
      }
      execution.HandleAll();
      repeats += execution.repeats();
      fast += execution.fast_repeats();
      // The fast way finds all but those of three words.
      if (seed % 3 != 0 && !options.overlaps) {
        EXPECT_EQ(execution.not_fast_repeats(), 0u);
      }
      const auto truth = Bytes(*RunOn("fasttrack", trace));
      racy += truth.size();
      if (truth != Bytes(execution.detector())) return true;
      const std::vector<Event> straight = Straight(execution.told());
      return std::ranges::any_of(
          std::array{"basicvc", "djit+", "fasttrack", "goldilocks", "lard", "tree-exact+fasttrack"},
          [&](const char* name) {
            if (truth == Bytes(*RunOn(name, straight))) return false;
            std::printf("%s finds other races\n", name);
            return true;
          });
    };
    std::vector<Event> trace = GenerateTrace(options);
    // There, repeats end for good.
    std::erase_if(trace, [](const Event& event) { return event.kind == EventKind::kCopyHistory; });
    // Not before the monitor has handled it does the rest of a block have its past back.
    for (Event& event : trace) {
      if (event.kind != EventKind::kClearHistory || seed % 13 == 0) continue;
      const std::uint64_t end = event.address + event.size + agent::kRepeatBlock - 1;
      event.address -= event.address % agent::kRepeatBlock;
      event.size = end - end % agent::kRepeatBlock - event.address;
    }
    if (!fails(trace)) continue;
    const std::vector<Event> small = ShrinkTrace(trace, fails);
    FAIL() << "seed " << seed << "\n" << PrintTrace(small);
  }
  // Else the test tests nothing.
  EXPECT_GT(repeats, (last - first) / 2);
  EXPECT_GT(fast, repeats / 2);
  EXPECT_GT(racy, (last - first) / 10);
  EXPECT_GT(grown, (last - first) / 10);
}

// Thread 0 writes the same bytes by the same instruction in one epoch after the other.
void WriteInEpochs(Execution& execution, int epochs, std::uint64_t size) {
  for (int i = 0; i < epochs; ++i) {
    execution.Do(Write(0, 0x1000, size, 1));
    execution.Do(Release(0, 7));
  }
}

TEST(Repeats, CleanedMemoryHasNoPast) {
  Execution execution(0);
  execution.Do(Fork(0, 1));
  WriteInEpochs(execution, 4, 8);
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
  execution.Do(Write(0, 0x1000, 4, 5));
  WriteInEpochs(execution, 3, 4);
  execution.Do(Acquire(1, 7));
  execution.Do(Write(0, 0x1000, 4, 5));
  EXPECT_EQ(execution.repeats(), 3u);
  execution.Do(Read(1, 0x1000, 4, 2));
  ASSERT_EQ(execution.detector().races().size(), 1u);
  EXPECT_EQ(execution.detector().races()[0].first.ip, 5u);
  EXPECT_EQ(execution.detector().races()[0].second.ip, 2u);
}

// Thread 1 knows of all writes but the last one, and those are forgotten before that is told.
TEST(Repeats, OfWhatIsForgottenTheLastOneCounts) {
  Execution execution(0, 0, RepeatTables::kFirstLines, true);
  execution.Do(Fork(0, 1));
  WriteInEpochs(execution, 3, 8);
  execution.Do(Acquire(1, 7));
  execution.Do(Read(1, 0x9000, 8, 3));
  execution.Do(Write(0, 0x1000, 8, 1));
  EXPECT_EQ(execution.repeats(), 3u);
  execution.Do(Write(1, 0x1000, 8, 2));
  EXPECT_EQ(execution.detector().races().size(), 1u);
}

// What a thread has repeated is told before it waits, so that it does not end that.
TEST(Repeats, AreToldBeforeTheirThreadWaits) {
  Execution execution(0);
  execution.Do(Fork(0, 1));
  WriteInEpochs(execution, 3, 8);
  EXPECT_EQ(execution.repeats(), 2u);
  execution.Do(JoinBegin(0, 1));
  ASSERT_GE(execution.told().size(), 2u);
  EXPECT_EQ(execution.told().back().kind, EventKind::kJoinBegin);
  EXPECT_EQ(execution.told().end()[-2].kind, EventKind::kEarlierWrite);
  execution.Do(Write(1, 0x1000, 8, 2));
  EXPECT_EQ(execution.told().back().kind, EventKind::kWrite);
  EXPECT_EQ(execution.detector().races().size(), 1u);
}

// Pages of the tables that have memory.
std::size_t TablePages() {
  std::vector<unsigned char> pages(sizeof(agent::RepeatTableMemory) / 4096);
  const int result = mincore(&agent::TableMemory(), sizeof(agent::RepeatTableMemory), pages.data());
  EXPECT_EQ(result, 0);
  return static_cast<std::size_t>(std::count(pages.begin(), pages.end(), 1));
}

constexpr std::uint64_t kAfterTrial = std::uint64_t{1} << 21;
constexpr std::uint64_t kAfterPause = std::uint64_t{1} << 30;
constexpr int kManyDrains = 100;

// So many blocks one after the other, as often as that.
void ReadBlocks(Execution& execution, std::uint64_t address, std::uint64_t blocks, int passes) {
  for (int pass = 0; pass < passes; ++pass) {
    for (std::uint64_t i = 0; i < blocks; ++i)
      execution.Do(Read(0, address + i * agent::kRepeatBlock, 8, 1));
  }
}

TEST(Repeats, ATableGrowsWhereItsThreadComesBackToMore) {
  constexpr std::uint64_t kBlocks = 16384;
  Execution execution(0, 0, kFewLines);
  ReadBlocks(execution, 0x100000, kBlocks, 20);
  EXPECT_EQ(execution.repeats(), 0u);
  EXPECT_TRUE(execution.IsFull(0));
  EXPECT_FALSE(execution.IsFull(0)) << "nothing has happened since";
  while (execution.LinesOf(0) < kBlocks) execution.Grow(0);
  ReadBlocks(execution, 0x100000, kBlocks, 20);
  EXPECT_EQ(execution.repeats(), 19 * kBlocks);
  EXPECT_FALSE(execution.IsFull(0));
}

TEST(Repeats, ATableThatIsFullOfWhatIsUsedOnceIsLargeEnough) {
  Execution execution(0, 0, kFewLines);
  ReadBlocks(execution, 0x100000, 300'000, 1);
  EXPECT_FALSE(execution.IsFull(0));
}

TEST(Repeats, ATableGrowsOnlySoFar) {
  Execution execution(0);
  for (int i = 0; i < 20; ++i) execution.Grow(0);
  EXPECT_EQ(execution.LinesOf(0), agent::kRepeatLines);
}

// Thread 0 repeats a read, of which thread 1 knows the first time only.
void RepeatARead(Execution& execution) {
  execution.Do(Fork(0, 1));
  execution.Do(Read(0, 0x1000, 8, 1));
  execution.Do(Release(0, 7));
  execution.Do(Acquire(1, 7));
  execution.Do(Read(0, 0x1000, 8, 1));
  EXPECT_EQ(execution.repeats(), 1u);
}

// What was noted before is told, and what cannot be told yet keeps the table as it is.
TEST(Repeats, WhatWasRepeatedOutlivesGrowth) {
  Execution execution(100);
  RepeatARead(execution);
  execution.Grow(0);
  EXPECT_EQ(execution.LinesOf(0), RepeatTables::kFirstLines);
  execution.Do(Release(1, 8));
  execution.HandleAll();
  execution.Grow(0);
  EXPECT_EQ(execution.LinesOf(0), 2 * RepeatTables::kFirstLines);
  execution.Do(Write(1, 0x1000, 8, 3));
  execution.HandleAll();
  EXPECT_EQ(execution.detector().races().size(), 1u);
}

// What was repeated is told before the tables give their memory back, and later they are used
// again.
TEST(Repeats, TablesThatDoNotPayHaveNoMemory) {
  Execution execution(0);
  execution.Do(Fork(0, 1));
  WriteInEpochs(execution, 3, 4);
  execution.HandleAll();
  EXPECT_EQ(execution.repeats(), 2u);
  execution.Weigh(kAfterTrial);
  EXPECT_GT(TablePages(), 0u);
  WriteInEpochs(execution, 3, 4);
  EXPECT_EQ(execution.repeats(), 2u);
  execution.HandleAll();
  for (int i = 0; i < kManyDrains; ++i) execution.Weigh(kAfterTrial);
  EXPECT_EQ(TablePages(), 0u);
  execution.Do(Write(1, 0x1000, 4, 2));
  EXPECT_EQ(execution.detector().races().size(), 1u);
  execution.HandleAll();
  execution.Weigh(kAfterPause);
  for (int i = 0; i < 4; ++i) {
    execution.Do(Write(1, 0x1000, 4, 2));
    execution.Do(Release(1, 7));
  }
  EXPECT_EQ(execution.repeats(), 5u);
}

// What was repeated while earlier events were still queued waits for these, and is not lost when
// the tables are.
TEST(Repeats, WhatCannotBeToldYetOutlivesTheTrial) {
  Execution execution(100);
  RepeatARead(execution);
  for (int i = 0; i < kManyDrains; ++i) execution.Weigh(kAfterTrial);
  execution.Do(Write(1, 0x1000, 8, 3));
  execution.Do(Release(1, 8));
  execution.HandleAll();
  EXPECT_EQ(execution.detector().races().size(), 0u);
  for (int i = 0; i < kManyDrains; ++i) execution.Weigh(kAfterTrial);
  EXPECT_EQ(TablePages(), 0u);
  EXPECT_EQ(execution.detector().races().size(), 1u);
}

// Another instruction may do to the same word what is not plain.
TEST(Repeats, InstructionsAreGrantedOneByOne) {
  Execution execution(0);
  execution.Do(Fork(0, 1));
  WriteInEpochs(execution, 3, 4);
  EXPECT_EQ(execution.repeats(), 2u);
  execution.Do(Write(0, 0x1000, 4, 2));
  EXPECT_EQ(execution.repeats(), 2u);
}

// A read need not be granted: the first one has not been handled yet.
TEST(Repeats, ReadsNeedNoGrant) {
  Execution execution(100);
  execution.Do(Fork(0, 1));
  for (int i = 0; i < 4; ++i) {
    execution.Do(Read(0, 0x1000, 8, 1));
    execution.Do(Write(0, 0x2000, 8, 2));
    execution.Do(Release(0, 7));
  }
  EXPECT_EQ(execution.repeats(), 3u);
  execution.Do(Write(1, 0x1000, 8, 3));
  execution.HandleAll();
  EXPECT_EQ(execution.detector().races().size(), 1u);
}

// Reads of what is written atomically are repeats until it is written, by whatever thread; writes
// never are.
TEST(Repeats, ReadsWhereOthersWriteAtomically) {
  Execution execution(0);
  execution.Do(Fork(0, 1));
  const auto new_repeats = [&](const Event& event) {
    const std::uint64_t before = execution.repeats();
    for (int i = 0; i < 4; ++i) {
      execution.Do(event);
      execution.Do(Release(0, 7));
    }
    return execution.repeats() - before;
  };
  const Event read = Read(0, 0x1000, 8, 1);
  const Event write = Write(0, 0x1000, 8, 2);
  for (const ThreadId writer : {1u, 0u}) {
    execution.Do(MakeEvent(EventKind::kAtomicRmw, writer, 0x1008, 8, 3));
    EXPECT_EQ(new_repeats(read), 3u);
    EXPECT_EQ(new_repeats(read), 4u);
    EXPECT_EQ(new_repeats(write), 0u);
    EXPECT_EQ(new_repeats(read), 3u);
  }
}

// Accesses of bytes do not count for the bytes beside them, and those of two blocks for both.
TEST(Repeats, BytesAndTwoBlocks) {
  Execution execution(0);
  execution.Do(Fork(0, 1));
  for (int i = 0; i < 3; ++i) {
    execution.Do(Write(0, 0x1005, 1, 1));
    execution.Do(Write(0, 0x100a, 2, 2));
    execution.Do(Write(0, 0x102c, 8, 3));
    execution.Do(Release(0, 7));
  }
  EXPECT_EQ(execution.repeats(), 6u);
  execution.Do(Write(1, 0x1004, 1, 4));
  execution.Do(Write(1, 0x1006, 4, 4));
  EXPECT_TRUE(execution.detector().races().empty());
  execution.Do(Read(1, 0x1005, 1, 5));
  execution.Do(Read(1, 0x100b, 1, 6));
  execution.Do(Read(1, 0x1030, 4, 7));
  execution.HandleAll();
  std::set<std::uint64_t> pairs;
  for (const Race& race : execution.detector().races())
    pairs.insert(race.first.ip * 10 + race.second.ip);
  EXPECT_EQ(pairs, (std::set<std::uint64_t>{15, 26, 37}));
}

// What faulted was no access: its next try is the first one.
TEST(Repeats, WhatFaultedIsToldAgain) {
  Execution execution(0);
  execution.Do(Fork(0, 1));
  execution.Do(Read(0, 0x1000, 8, 1));
  execution.Untell(Read(0, 0x1000, 8, 1));
  execution.Do(Read(0, 0x1000, 8, 1));
  EXPECT_EQ(execution.repeats(), 0u);
  execution.Do(Read(0, 0x1000, 8, 1));
  EXPECT_EQ(execution.repeats(), 1u);
}

// The block changes hands once more, and is written again, before the monitor gets to see that it
// has been given back.
TEST(Repeats, FreeingABlockConcernsEarlierRepeatsOnly) {
  Execution execution(100);
  execution.Do(Fork(0, 1));
  const auto write = [&](ThreadId thread) { execution.Do(Write(thread, 0x1000, 8, 1)); };
  write(1);  // so that it may be repeated
  execution.HandleAll();
  execution.Do(Release(1, 7));
  execution.Do(Acquire(0, 7));
  write(0);
  execution.Free(0, 0x1000, 16);
  execution.Do(Release(0, 7));
  execution.Do(Acquire(1, 7));
  execution.Do(Clear(1, 0x1000, 16));
  write(1);
  const std::uint64_t repeats = execution.repeats();
  write(1);
  EXPECT_EQ(execution.repeats(), repeats + 1);
  execution.Free(1, 0x1000, 16);
  execution.HandleAll();
  EXPECT_TRUE(execution.detector().races().empty());
}

// Two threads read what a third one has repeated. The first one is to tell of that, and the second
// one is faster.
TEST(Repeats, MayBeToldAfterAnotherReader) {
  Execution execution(0);
  execution.Stall();
  execution.Do(Fork(0, 1));
  execution.Do(Fork(0, 2));
  WriteInEpochs(execution, 3, 8);
  EXPECT_EQ(execution.repeats(), 2u);
  for (const ThreadId reader : {1u, 2u}) execution.Do(Acquire(reader, 7));
  for (const ThreadId reader : {1u, 2u}) execution.Do(Read(reader, 0x1000, 8, 2));
  execution.HandleAll();
  EXPECT_TRUE(execution.detector().races().empty());
}

// An atomic access of other bytes has ended nothing until the repeat is told: it may race with it.
TEST(Repeats, MayRaceWithAnAtomicAccessBefore) {
  const auto atomic = [](ThreadId thread, std::uint64_t address, std::uint64_t ip) {
    Event event = MakeEvent(EventKind::kAtomicWrite, thread, address, 4, ip);
    event.order = MemoryOrder::kAcqRel;
    return event;
  };
  Execution execution(7, 6);
  const std::vector<Event> trace{
      Write(0, 0xfff0, 8, 3), Write(0, 0xfff6, 4, 1), atomic(0, 0xfff8, 2), Fork(0, 1),
      Read(1, 0xfff1, 1, 2),  Read(1, 0xfff8, 8, 4),  Fork(1, 2),           Write(2, 0x10001, 2, 5),
      Read(1, 0xfff8, 8, 0),  atomic(2, 0xfffc, 0)};
  for (const Event& event : trace) execution.Do(event);
  execution.HandleAll();
  EXPECT_EQ(Bytes(execution.detector()), Bytes(*RunOn("fasttrack", trace)));
}

// What others have done to it races with giving it back.
TEST(Repeats, FreeingABlockTellsWhatOthersRepeated) {
  Execution execution(0);
  execution.Do(Fork(0, 1));
  execution.Do(Write(1, 0x1000, 8, 1));
  execution.Do(Release(1, 7));
  execution.Do(Acquire(0, 7));
  execution.Do(Write(1, 0x1000, 8, 1));
  EXPECT_EQ(execution.repeats(), 1u);
  execution.Free(0, 0x1000, 16);
  EXPECT_EQ(execution.detector().races().size(), 1u);
}

// Lines that are no good are not looked at whenever a block near them is given back; those that are
// good, or are so again, are.
TEST(Repeats, FreeingBlocksForgetsWhereNothingIs) {
  Execution execution(0);
  execution.Do(Fork(0, 1));
  const auto free_neighbours = [&] {
    for (int i = 0; i < 100; ++i) execution.Free(0, 0x1040, 16);
  };
  for (std::size_t round = 1; round <= 3; ++round) {
    execution.Do(Write(1, 0x1000, 8, 1));
    execution.Do(Release(1, 7));
    execution.Do(Acquire(0, 7));
    execution.Do(Write(1, 0x1000, 8, 1));
    EXPECT_EQ(execution.repeats(), round);
    free_neighbours();
    EXPECT_TRUE(execution.IsTableUsed(1));
    execution.Free(0, 0x1000, 16);
    EXPECT_EQ(execution.detector().races().size(), round);
    free_neighbours();
    EXPECT_FALSE(execution.IsTableUsed(1));
    execution.Do(Clear(0, 0x1000, 16));
  }
}

// What threads have repeated is told before the detector forgets what their clocks were then, that
// is when one of them alone has come to so many moments.
TEST(Repeats, ManyMomentsOfOneThreadTellAll) {
  static_assert(RepeatTables::kMostMoments + TRAPLINE_QUEUE_ENTRIES < MomentHistory::kLeast);
  Execution execution(0);
  execution.Do(Fork(0, 1));
  for (const ThreadId thread : {0u, 1u}) {
    for (int i = 0; i < 2; ++i) {
      execution.Do(Write(thread, 0x1000 + 0x100 * thread, 8, 1));
      execution.Do(Release(thread, 7 + thread));
    }
  }
  EXPECT_EQ(execution.repeats(), 2u);
  execution.HandleAll();
  const std::size_t before = execution.told().size();
  for (std::uint32_t i = 1; i < RepeatTables::kMostMoments; ++i) {
    ASSERT_FALSE(execution.OnMoment(0));
    ASSERT_FALSE(execution.OnMoment(1));
  }
  EXPECT_EQ(execution.told().size(), before);
  EXPECT_TRUE(execution.OnMoment(0));
  EXPECT_EQ(execution.told().size(), before + 2);
  EXPECT_FALSE(execution.OnMoment(1));  // all begin anew
}

}  // namespace
}  // namespace trapline
