// The agent's part of guest-agent/biased_locks.h, run as the guest runs it, an instruction at a
// time: threads are switched, and interrupted by signals, between any two of them. What FastTrack
// finds by what is told must be what it finds by all that was done. TRAPLINE_TRACES sets how many
// executions, TRAPLINE_FIRST_TRACE the seed of the first one.
#include "guest-agent/biased_locks.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "detector/moment_clocks.h"
#include "guest-agent/agent.h"
#include "hypervisor/agent_code.h"
#include "hypervisor/biased_locks.h"
#include "tests/detector/trace_builder.h"
#include "tests/support/reference.h"
#include "tests/support/trace_generator.h"

namespace trapline {
namespace {

constexpr std::uint64_t kReturned = 0x7f000000;  // where the event's caller would go on
constexpr std::size_t kMostEvents = 512;         // of one thread

void* MapAt(std::uint64_t start, std::size_t size, int protection) {
  void* const at = reinterpret_cast<void*>(start);
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  if (mmap(at, size, protection, kFlags, -1, 0) != at) std::abort();
  return at;
}

// What of a thread page region events use, which lies at one address for all threads.
struct Region {
  agent::ThreadPage page{};
  std::array<agent::QueuedEvent, kMostEvents> queue{};

  static agent::ThreadPage& Page() {
    return *reinterpret_cast<agent::ThreadPage*>(TRAPLINE_THREAD_PAGE);
  }
  void Enter() const {
    Page() = page;
    std::memcpy(reinterpret_cast<void*>(TRAPLINE_EVENT_QUEUE), queue.data(), sizeof queue);
  }
  void Leave() {
    page = Page();
    std::memcpy(queue.data(), reinterpret_cast<void*>(TRAPLINE_EVENT_QUEUE), sizeof queue);
  }
};

using Registers = std::array<greg_t, REG_EFL + 1>;

// Of the thread that is stepped, and of the test meanwhile.
Registers stepped, stepping;
bool in_step = false;

void OnTrap(int, siginfo_t*, void* context) {
  constexpr greg_t kTrapFlag = 0x100;
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto copy = [](const greg_t* from, greg_t* to) {
    for (int i = REG_R8; i <= REG_RIP; ++i) to[i] = from[i];
    to[REG_EFL] = from[REG_EFL];
  };
  in_step = !in_step;
  if (in_step) {
    copy(registers, stepping.data());
    copy(stepped.data(), registers);
    registers[REG_EFL] |= kTrapFlag;
  } else {
    copy(registers, stepped.data());
    stepped[REG_EFL] &= ~kTrapFlag;
    copy(stepping.data(), registers);
  }
}

// What a thread does: takes or gives back a lock, or (kSyncUsed) something that is told of.
struct Action {
  std::uint64_t kind, address;
};

struct SimulatedThread {
  Region region;
  std::vector<std::uint64_t> stack = std::vector<std::uint64_t>(64);
  std::vector<Action> actions;  // to come, the next one last
  // Events under way, the innermost, in a signal handler, last.
  struct Call {
    Action action;
    Registers registers;
    std::vector<Action> rest;  // of the handler
    bool told = false;         // before an interruption
  };
  std::vector<Call> calls;
};

class Simulation {
 public:
  static constexpr unsigned kThreads = 3;

  explicit Simulation(std::uint64_t seed) : random_(static_cast<std::uint32_t>(seed)) {
    std::memset(&agent::Locks(), 0, 4096 + sizeof agent::Locks().use);
    for (auto& lines : agent::Locks().lines) std::ranges::fill(lines, agent::LockLine{});
    agent::Repeats().enabled = 0;
    agent::Locks().tables = agent::kRepeatThreads;
    agent::Locks().state = TRAPLINE_LOCKS_BIASED;
    NextEvent() = 1;
    // Some that have a word in common, some a line, some nothing.
    constexpr std::uint64_t kLock = 0x1000;
    const std::uint64_t same_word = Like(kLock, kLock, agent::kLockWords - 1);
    const std::uint64_t same_line = Like(kLock, kLock, agent::kLockLines - 1);
    locks_ = {kLock, same_word, same_line, Like(kLock, same_word, agent::kLockWords - 1), 0x20004};
    for (unsigned i = 0; i < kThreads; ++i) {
      SimulatedThread& thread = threads_[i];
      agent::ThreadPage& page = thread.region.page;
      page.tracking = page.events = 1;
      page.repeat_user = i + 1;
      page.lock_table = reinterpret_cast<std::uint64_t>(&agent::Locks().lines[i]);
      agent::Repeats().threads[i] = i + 2;  // number i + 1; thread 0 starts them
      forks_.push_back(Fork(0, i + 1));
      for (unsigned n = 0; n < 6; ++n) AddActions(thread, i);
    }
    done_ = told_done_ = forks_;
  }

  void Run() {
    for (;;) {
      std::vector<unsigned> able;
      for (unsigned i = 0; i < kThreads; ++i) {
        if (CanRun(threads_[i])) able.push_back(i);
      }
      if (able.empty()) break;
      // Some go on for long, some are switched at once.
      const unsigned next = able[Random() % able.size()];
      for (unsigned steps = 1 + Random() % (Random() % 3 == 0 ? 40 : 4); steps > 0; --steps) {
        if (!CanRun(threads_[next])) break;
        Enter(next);
        Step(next);
      }
    }
  }

  // All that was done.
  const std::vector<Event>& done() const { return done_; }
  // The same in the order in which it was told: what a signal handler did just before a lock was
  // given back, when that had been told, after it; and before a lock was taken, if that had not.
  const std::vector<Event>& told_done() const { return told_done_; }
  // By more than one thread.
  std::uint64_t words_used() const {
    std::map<std::uint64_t, std::set<ThreadId>> users;
    for (const Event& event : done_) {
      if (event.kind == EventKind::kWrite) users[event.address].insert(event.thread);
    }
    return static_cast<std::uint64_t>(
        std::ranges::count_if(users, [](const auto& word) { return word.second.size() > 1; }));
  }
  std::uint64_t untold() const { return untold_; }
  std::uint64_t restarts() const { return restarts_; }

  // What the monitor hears of it.
  std::vector<Event> Told() {
    std::map<std::uint64_t, Event> events;
    Enter(kThreads);
    for (unsigned i = 0; i < kThreads; ++i) {
      const Region& region = threads_[i].region;
      EXPECT_LT(region.page.queue_head, kMostEvents);
      for (std::uint64_t at = 0; at < region.page.queue_head; ++at) {
        const agent::QueuedEvent& entry = region.queue[at];
        Event event = MakeEvent(EventKind::kWrite, i + 1, entry.address, 8);
        if (entry.kind != TRAPLINE_SYNC_USED) event.size = 0;
        if (entry.kind == TRAPLINE_ACQUIRE) event.kind = EventKind::kAcquire;
        if (entry.kind == TRAPLINE_RELEASE) event.kind = EventKind::kRelease;
        if (entry.kind == TRAPLINE_RELEASE) event.aux = entry.sequence + 1;
        if (entry.kind == TRAPLINE_QUEUED_TICK) {
          ++untold_;
          event = MakeEvent(EventKind::kTick, i + 1);
          event.aux = entry.sequence + 1;
        }
        if (entry.kind == TRAPLINE_QUEUED_LATE_RELEASE) {
          event.kind = EventKind::kLateRelease;
          event.thread = static_cast<ThreadId>(entry.ip - 1);
          event.aux =
              agent::WholeMoment(entry.sequence, static_cast<std::uint32_t>(entry.size)) + 1;
        }
        EXPECT_TRUE(events.emplace(entry.sequence, event).second) << "one number for two events";
      }
    }
    std::vector<Event> told = forks_;
    for (const auto& [number, event] : events) told.push_back(event);
    return told;
  }

 private:
  static std::uint64_t& NextEvent() {
    return *reinterpret_cast<std::uint64_t*>(TRAPLINE_SHARED_PAGE);
  }
  // A lock behind another one whose hash is that of `lock` in these bits, and no others if
  // possible.
  static std::uint64_t Like(std::uint64_t lock, std::uint64_t behind, std::uint32_t mask) {
    for (std::uint64_t other = behind + 4;; other += 4) {
      const std::uint32_t differs = agent::HashOfLock(other) ^ agent::HashOfLock(lock);
      if ((differs & mask) == 0 && (differs != 0 || mask == agent::kLockWords - 1)) return other;
    }
  }

  // kThreads: none.
  void Enter(unsigned thread) {
    if (entered_ == thread) return;
    if (entered_ != kThreads) threads_[entered_].region.Leave();
    if (thread != kThreads) threads_[thread].region.Enter();
    entered_ = thread;
  }

  // Of which each thread does some again and again.
  void AddActions(SimulatedThread& thread, unsigned number) {
    const auto lock = [&] {
      return locks_[Random() % 4 == 0 ? Random() % locks_.size() : number % locks_.size()];
    };
    const std::uint64_t outer = lock(), inner = lock();
    // Mostly between locks, and few by whom each: what orders them is locks that were held untold.
    const auto use = [&](unsigned one_in) {
      if (Random() % one_in == 0) thread.actions.push_back({TRAPLINE_SYNC_USED, AnyWord()});
    };
    for (unsigned n = 1 + Random() % 3; n > 0; --n) {  // from the last one to the first
      use(2);
      thread.actions.push_back({TRAPLINE_RELEASE, outer});
      if (inner > outer && Random() % 2 == 0) {  // in this order, that nobody waits for ever
        const bool crosswise = Random() % 4 == 0;
        if (crosswise) thread.actions.back().address = inner;
        thread.actions.push_back({TRAPLINE_RELEASE, crosswise ? outer : inner});
        use(8);
        thread.actions.push_back({TRAPLINE_ACQUIRE, inner});
      }
      use(8);
      thread.actions.push_back({TRAPLINE_ACQUIRE, outer});
    }
  }

  std::uint64_t AnyWord() { return 0x100000 + Random() % 32 * 8; }

  void Do(const Event& event) {
    done_.push_back(event);
    told_done_.push_back(event);
  }

  bool CanStart(const Action& action) const {
    return action.kind != TRAPLINE_ACQUIRE || !held_.contains(action.address);
  }
  bool CanRun(const SimulatedThread& thread) const {
    return !thread.calls.empty() || (!thread.actions.empty() && CanStart(thread.actions.back()));
  }

  void Call(SimulatedThread& thread, unsigned number, const Action& action,
            std::vector<Action> rest) {
    if (action.kind == TRAPLINE_ACQUIRE) {  // has happened when it is told
      held_.insert(action.address);
      done_.push_back(Acquire(number + 1, action.address));
    }
    if (action.kind == TRAPLINE_SYNC_USED) Do(Write(number + 1, action.address));
    Registers registers{};
    registers[REG_EFL] = 0x202;
    const std::size_t top = thread.stack.size() - 1 - 8 * thread.calls.size();
    thread.stack[top] = kReturned;
    registers[REG_RSP] = reinterpret_cast<greg_t>(&thread.stack[top]);
    registers[REG_RIP] = static_cast<greg_t>(agent::GuestAddressOf(trapline_agent_event));
    registers[REG_RDI] = static_cast<greg_t>(action.kind);
    registers[REG_RSI] = static_cast<greg_t>(action.address);
    registers[REG_RDX] = TRAPLINE_LOCK_MUTEX;
    registers[REG_RCX] = 0x400000;
    thread.calls.push_back({action, registers, std::move(rest)});
  }

  void Step(unsigned number) {
    SimulatedThread& thread = threads_[number];
    if (thread.calls.empty()) {
      const Action action = thread.actions.back();
      thread.actions.pop_back();
      Call(thread, number, action, {});
      return;
    }
    // The code that tells of accesses is not interrupted.
    if (thread.calls.size() == 1 && thread.calls[0].action.kind != TRAPLINE_SYNC_USED &&
        Random() % 100 == 0) {
      Interrupt(thread, number);
      return;
    }
    SimulatedThread::Call& call = thread.calls.back();
    stepped = call.registers;
    asm volatile("int3" : : : "memory");
    call.registers = stepped;
    if (static_cast<std::uint64_t>(call.registers[REG_RIP]) != kReturned) return;
    const Action action = call.action;
    const bool told = call.told;
    std::vector<Action> rest = std::move(call.rest);
    thread.calls.pop_back();
    if (action.kind == TRAPLINE_ACQUIRE && !told)
      told_done_.push_back(Acquire(number + 1, action.address));
    if (action.kind == TRAPLINE_RELEASE) {  // is told before it happens
      held_.erase(action.address);
      done_.push_back(Release(number + 1, action.address));
      if (!told) told_done_.push_back(done_.back());
    }
    if (rest.empty()) return;
    const Action next = rest.back();
    rest.pop_back();
    // The handler does without what it would have to wait for.
    if (CanStart(next)) Call(thread, number, next, std::move(rest));
  }

  // A signal: the event begins anew where GuestThread would have it, and its handler may take a
  // lock of its own.
  void Interrupt(SimulatedThread& thread, unsigned number) {
    SimulatedThread::Call& call = thread.calls.back();
    Registers& registers = call.registers;
    if (RestartsEvent(static_cast<std::uint64_t>(registers[REG_RIP]))) {
      registers[REG_RIP] = static_cast<greg_t>(agent::GuestAddressOf(trapline_agent_event));
      ++restarts_;
    } else if (!std::exchange(call.told, true)) {
      const bool release = call.action.kind == TRAPLINE_RELEASE;
      told_done_.push_back(MakeEvent(release ? EventKind::kRelease : EventKind::kAcquire,
                                     number + 1, call.action.address));
    }
    const std::uint64_t lock = locks_[Random() % locks_.size()];
    if (held_.contains(lock)) return;
    std::vector<Action> rest;  // the next one last
    for (std::uint32_t more = Random() % 3; more > 0; --more) {
      rest.push_back({TRAPLINE_RELEASE, lock});
      rest.push_back({TRAPLINE_ACQUIRE, lock});
      if (Random() % 2 == 0) rest.push_back({TRAPLINE_SYNC_USED, AnyWord()});
    }
    rest.push_back({TRAPLINE_RELEASE, lock});
    Call(thread, number, {TRAPLINE_ACQUIRE, lock}, std::move(rest));
  }

  std::uint32_t Random() { return static_cast<std::uint32_t>(random_()); }

  std::mt19937 random_;
  std::array<SimulatedThread, kThreads> threads_;
  std::vector<std::uint64_t> locks_;
  std::set<std::uint64_t> held_;
  std::vector<Event> done_, told_done_, forks_;
  unsigned entered_ = kThreads;
  std::uint64_t untold_ = 0, restarts_ = 0;
};

std::set<std::uint64_t> RacyBytes(const std::vector<Event>& trace) {
  std::set<std::uint64_t> bytes;
  for (const auto& [byte, event] : FirstRaces(*RunOn("fasttrack", trace))) bytes.insert(byte);
  return bytes;
}

static_assert(BiasedLocks::kMostAcquired <= MomentClocks::kLeastLearnt);

class BiasedLocksTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    void* const code = MapAt(TRAPLINE_AGENT_CODE, (agent::CodeSize() + 4095) / 4096 * 4096,
                             PROT_READ | PROT_WRITE | PROT_EXEC);
    agent::CopyCode(static_cast<char*>(code));
    MapAt(TRAPLINE_SHARED_PAGE, 4096, PROT_READ | PROT_WRITE);
    MapAt(TRAPLINE_THREAD_PAGE, TRAPLINE_THREAD_PAGES * 4096, PROT_READ | PROT_WRITE);
    MapAt(TRAPLINE_REPEATS, TRAPLINE_CACHE_END - TRAPLINE_REPEATS, PROT_READ | PROT_WRITE);
    constexpr std::size_t kStack = 1 << 16;
    stack_t stack{};
    stack.ss_sp = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack.ss_size = kStack;
    sigaltstack(&stack, nullptr);
    struct sigaction action {};
    action.sa_sigaction = OnTrap;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGTRAP, &action, nullptr);
  }
};

TEST_F(BiasedLocksTest, AnySwitchOfThreadsGivesTheSameRaces) {
  const std::uint64_t first = FromEnvironment("TRAPLINE_FIRST_TRACE", 1);
  const std::uint64_t count = FromEnvironment("TRAPLINE_TRACES", 40);
  std::uint64_t untold = 0, restarts = 0, racy = 0, words = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Simulation simulation(seed);
    simulation.Run();
    const std::vector<Event> told = simulation.Told();
    const std::set<std::uint64_t> expected = RacyBytes(simulation.done());
    const std::set<std::uint64_t> at_most = RacyBytes(simulation.told_done());
    const std::set<std::uint64_t> found = RacyBytes(told);
    ASSERT_TRUE(std::ranges::includes(found, expected)) << "missed, seed " << seed;
    ASSERT_TRUE(std::ranges::includes(at_most, found)) << "false alarm, seed " << seed;
    untold += simulation.untold();
    restarts += simulation.restarts();
    constexpr std::uint64_t kBytes = 8;
    racy += expected.size() / kBytes;
    words += simulation.words_used();
  }
  EXPECT_GT(untold, 2 * count);
  EXPECT_GT(restarts, count);
  EXPECT_GT(racy, 2 * count);
  EXPECT_GT(words - racy, 2 * count);
  printf("untold %lu restarts %lu racy %lu of %lu\n", untold, restarts, racy, words);
}

}  // namespace
}  // namespace trapline
