#include "tests/support/trace_generator.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

namespace trapline {
namespace {

constexpr std::uint64_t kMemory =
    0x10000 - 16;  // the first words lie on both sides of a page's end
constexpr std::uint64_t kMutexes = 0x20000;
constexpr std::uint64_t kRwLocks = 0x30000;
constexpr std::uint64_t kKeys = 0x40000;
constexpr std::uint64_t kBarriers = 0x50000;

class Generator {
 public:
  explicit Generator(const TraceOptions& options) : options_(options), random_(options.seed) {}

  std::vector<Event> Run() {
    threads_.resize(1);
    if (options_.fork_first) {
      while (static_cast<int>(threads_.size()) < options_.max_threads) Fork(0);
    }
    int patience = 20 * options_.events;
    while (static_cast<int>(trace_.size()) < options_.events && patience-- > 0) Step();
    return std::move(trace_);
  }

 private:
  struct Held {
    std::uint64_t lock;
    bool shared;
  };
  struct Thread {
    bool ended = false;
    bool joined = false;
    std::uint64_t barrier = 0;  // waits there
    ThreadId waits_for = 0;     // and is the only one to do so
    bool awaited = false;
    std::vector<Held> held;  // innermost last
  };
  struct Barrier {
    std::size_t wanted = 0;
    std::vector<ThreadId> inside;
    bool open = false;  // full: all may leave
  };

  std::uint64_t Below(std::uint64_t bound) { return random_() % bound; }
  bool OneIn(std::uint64_t n) { return Below(n) == 0; }

  Event& Add(EventKind kind, ThreadId thread, std::uint64_t address = 0, std::uint64_t size = 0) {
    Event event{};
    event.kind = kind;
    event.thread = thread;
    event.address = address;
    event.size = size;
    event.ip = 0x1000 + 4 * trace_.size();
    if (options_.locations > 0) {
      event.ip = 0x1000 + 4 * (Below(options_.locations) * 2 + (kind == EventKind::kWrite));
    }
    trace_.push_back(event);
    return trace_.back();
  }

  void Step() {
    const auto t = static_cast<ThreadId>(Below(threads_.size()));
    if (threads_[t].ended) return;
    if (threads_[t].barrier != 0) {
      LeaveBarrier(t);
      return;
    }
    if (threads_[t].waits_for != 0) {
      Wait(t);
      return;
    }
    const std::uint64_t choice = Below(100);
    if (choice < 45) {
      Access(t);
    } else if (choice < 58) {
      Acquire(t);
    } else if (choice < 73) {
      Release(t);
    } else if (choice < 79) {
      if (!options_.fork_first) Fork(t);
    } else if (choice < 82) {
      End(t);
    } else if (choice < 85) {
      Join(t);
    } else if (choice < 88) {
      Key(t);
    } else if (choice < 91) {
      EnterBarrier(t);
    } else if (choice < 97) {
      Atomic(t);
    } else {
      Remap(t);
    }
  }

  // Some bytes of the memory in use.
  std::pair<std::uint64_t, std::uint64_t> Range() {
    const std::uint64_t word = Below(options_.words);
    if (!options_.overlaps) return {kMemory + 8 * word, 8};
    if (OneIn(24)) return {kMemory + 8 * word, 144};  // whole lines of shadow memory
    static constexpr std::array<std::uint64_t, 8> kSizes{1, 2, 4, 4, 8, 8, 8, 16};
    const std::uint64_t size = kSizes[Below(kSizes.size())];
    std::uint64_t offset = size < 8 ? Below(8 / size) * size : 0;
    if (OneIn(8)) offset = Below(8);  // unaligned
    return {kMemory + 8 * word + offset, size};
  }

  void Access(ThreadId t) {
    const auto [address, size] = Range();
    Add(OneIn(2) ? EventKind::kRead : EventKind::kWrite, t, address, size);
  }

  void Acquire(ThreadId t) {
    const int all = options_.mutexes + options_.rwlocks;
    if (all == 0 || threads_[t].held.size() >= 3) return;
    const int which = static_cast<int>(Below(all));
    const bool rw = which >= options_.mutexes;
    const std::uint64_t lock = rw ? kRwLocks + 8 * (which - options_.mutexes)
                                  : kMutexes + 8 * static_cast<std::uint64_t>(which);
    const bool shared = rw && OneIn(2);
    bool mine = false;
    for (ThreadId u = 0; u < threads_.size(); ++u) {
      for (const Held& held : threads_[u].held) {
        if (held.lock != lock) continue;
        if (u != t && !(held.shared && shared)) return;  // it would block
        mine |= u == t;
      }
    }
    if (mine && rw) return;
    threads_[t].held.push_back({lock, shared});
    if (mine) return;  // recursive: only the outermost pair is an event
    Add(shared ? EventKind::kAcquireShared : EventKind::kAcquire, t, lock);
  }

  void Release(ThreadId t) {
    std::vector<Held>& held = threads_[t].held;
    if (held.empty()) return;
    const std::size_t which = OneIn(5) ? Below(held.size()) : held.size() - 1;
    const Held lock = held[which];
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    for (const Held& other : held) {
      if (other.lock == lock.lock) return;
    }
    Add(lock.shared ? EventKind::kReleaseShared : EventKind::kRelease, t, lock.lock);
  }

  void Fork(ThreadId t) {
    const auto alive = std::ranges::count(threads_, false, &Thread::ended);
    if (alive >= options_.max_threads) return;
    if (static_cast<int>(threads_.size()) >= options_.max_threads * options_.generations) return;
    Add(EventKind::kFork, t).other = static_cast<ThreadId>(threads_.size());
    threads_.emplace_back();
  }

  void End(ThreadId t) {
    if (t == 0 || !options_.joins || (options_.generations == 1 && !OneIn(2))) return;
    while (!threads_[t].held.empty()) Release(t);
    // As a stack is given back.
    if (options_.generations > 1 && options_.remaps && OneIn(2))
      Add(EventKind::kClearHistory, t, kMemory, 8 * Below(options_.words + 1));
    threads_[t].ended = true;
    Add(EventKind::kThreadEnd, t);
  }

  void Join(ThreadId t) {
    if (!options_.joins) return;
    for (ThreadId u = 1; u < threads_.size(); ++u) {
      if (u == t || !threads_[u].ended || threads_[u].joined || threads_[u].awaited) continue;
      threads_[u].joined = true;
      Add(EventKind::kJoin, t).other = u;
      return;
    }
    BeginJoin(t);
  }

  void BeginJoin(ThreadId t) {
    const auto u = static_cast<ThreadId>(Below(threads_.size()));
    if (u == 0 || threads_[u].awaited || threads_[u].joined) return;
    for (ThreadId v = u; v != 0; v = threads_[v].waits_for) {
      if (v == t) return;  // for ever
    }
    threads_[u].awaited = true;
    threads_[t].waits_for = u;
    Add(EventKind::kJoinBegin, t).other = u;
  }

  // What it has lost may be told meanwhile.
  void Wait(ThreadId t) {
    const ThreadId u = threads_[t].waits_for;
    if (threads_[u].ended) {
      if (!OneIn(4)) return;  // the others go on meanwhile
      threads_[u].joined = true;
      threads_[t].waits_for = 0;
      Add(EventKind::kJoin, t).other = u;
    } else if (options_.keys > 0 && OneIn(8)) {
      Add(EventKind::kHappensBefore, t, kKeys + 8 * Below(options_.keys));
    }
  }

  void Key(ThreadId t) {
    if (options_.keys == 0) return;
    const std::uint64_t key = kKeys + 8 * Below(options_.keys);
    Add(OneIn(2) ? EventKind::kHappensBefore : EventKind::kHappensAfter, t, key);
  }

  void EnterBarrier(ThreadId t) {
    if (!options_.barriers) return;
    if (barrier_.open) return;  // some are still leaving
    if (barrier_.inside.empty()) barrier_.wanted = 2 + Below(2);
    barrier_.inside.push_back(t);
    threads_[t].barrier = kBarriers;
    Add(EventKind::kBarrierEnter, t, kBarriers);
    barrier_.open = barrier_.inside.size() == barrier_.wanted;
  }

  void LeaveBarrier(ThreadId t) {
    if (!barrier_.open) return;
    std::erase(barrier_.inside, t);
    threads_[t].barrier = 0;
    Add(EventKind::kBarrierLeave, t, kBarriers);
    barrier_.open = !barrier_.inside.empty();
  }

  void Atomic(ThreadId t) {
    if (!options_.atomics) return;
    static constexpr std::array<EventKind, 3> kKinds{
        EventKind::kAtomicRead, EventKind::kAtomicWrite, EventKind::kAtomicRmw};
    const std::uint64_t size = options_.overlaps && OneIn(2) ? 4 : 8;
    const std::uint64_t address =
        kMemory + 8 * Below(options_.words) + (size == 4 ? 4 * Below(2) : 0);
    Add(kKinds[Below(3)], t, address, size).order = static_cast<MemoryOrder>(Below(5));
  }

  void Remap(ThreadId t) {
    if (!options_.remaps) return;
    auto [address, size] = Range();
    if (OneIn(4)) size += 8;
    if (OneIn(2)) {
      Add(EventKind::kClearHistory, t, address, size);
    } else {
      const auto [source, unused] = Range();
      Add(EventKind::kCopyHistory, t, address, size).aux = source;
    }
  }

  TraceOptions options_;
  std::mt19937_64 random_;
  std::vector<Event> trace_;
  std::vector<Thread> threads_;
  Barrier barrier_;
};

const char* NameOf(EventKind kind) {
  switch (kind) {
    case EventKind::kRead:
      return "read";
    case EventKind::kWrite:
      return "write";
    case EventKind::kAtomicRead:
      return "atomic-read";
    case EventKind::kAtomicWrite:
      return "atomic-write";
    case EventKind::kAtomicRmw:
      return "atomic-rmw";
    case EventKind::kAcquire:
      return "acquire";
    case EventKind::kRelease:
      return "release";
    case EventKind::kAcquireShared:
      return "acquire-shared";
    case EventKind::kReleaseShared:
      return "release-shared";
    case EventKind::kHappensBefore:
      return "happens-before";
    case EventKind::kHappensAfter:
      return "happens-after";
    case EventKind::kFork:
      return "fork";
    case EventKind::kJoin:
      return "join";
    case EventKind::kThreadEnd:
      return "thread-end";
    case EventKind::kBarrierEnter:
      return "barrier-enter";
    case EventKind::kBarrierLeave:
      return "barrier-leave";
    case EventKind::kClearHistory:
      return "clear-history";
    case EventKind::kCopyHistory:
      return "copy-history";
    case EventKind::kJoinBegin:
      return "join-begin";
    default:
      return "other";
  }
}

}  // namespace

std::vector<Event> GenerateTrace(const TraceOptions& options) { return Generator(options).Run(); }

bool IsWellFormed(const std::vector<Event>& trace) {
  struct Lock {
    std::multiset<ThreadId> shared;
    ThreadId owner = 0;
    bool owned = false;
  };
  std::map<std::uint64_t, Lock> locks;
  std::set<ThreadId> alive{0};
  std::set<ThreadId> gone;
  std::set<std::pair<std::uint64_t, ThreadId>> waiting;
  std::map<ThreadId, ThreadId> joining;
  for (const Event& e : trace) {
    if (!alive.contains(e.thread) || gone.contains(e.thread)) return false;
    if (const auto joins = joining.find(e.thread);
        joins != joining.end() && e.kind != EventKind::kHappensBefore) {
      if (e.kind != EventKind::kJoin || e.other != joins->second) return false;
      joining.erase(joins);
    }
    Lock& lock = locks[e.address];
    switch (e.kind) {
      case EventKind::kAcquire:
        if (lock.owned || !lock.shared.empty()) return false;
        lock.owned = true;
        lock.owner = e.thread;
        break;
      case EventKind::kRelease:
        if (!lock.owned || lock.owner != e.thread) return false;
        lock.owned = false;
        break;
      case EventKind::kAcquireShared:
        if (lock.owned) return false;
        lock.shared.insert(e.thread);
        break;
      case EventKind::kReleaseShared:
        if (!lock.shared.contains(e.thread)) return false;
        lock.shared.erase(lock.shared.find(e.thread));
        break;
      case EventKind::kFork:
        if (!alive.insert(e.other).second) return false;
        break;
      case EventKind::kThreadEnd:
        gone.insert(e.thread);
        break;
      case EventKind::kJoin:
        if (!gone.contains(e.other)) return false;
        break;
      case EventKind::kJoinBegin:
        if (!alive.contains(e.other) || e.other == e.thread) return false;
        joining[e.thread] = e.other;
        break;
      case EventKind::kBarrierEnter:
        if (!waiting.insert({e.address, e.thread}).second) return false;
        break;
      case EventKind::kBarrierLeave:
        if (waiting.erase({e.address, e.thread}) == 0) return false;
        break;
      default:
        break;
    }
  }
  return true;
}

std::vector<Event> ShrinkTrace(std::vector<Event> trace,
                               const std::function<bool(const std::vector<Event>&)>& fails) {
  for (std::size_t chunk = trace.size() / 2; chunk > 0;) {
    bool shrunk = false;
    for (std::size_t start = 0; start + chunk <= trace.size();) {
      std::vector<Event> smaller = trace;
      smaller.erase(smaller.begin() + static_cast<std::ptrdiff_t>(start),
                    smaller.begin() + static_cast<std::ptrdiff_t>(start + chunk));
      if (IsWellFormed(smaller) && fails(smaller)) {
        trace = std::move(smaller);
        shrunk = true;
      } else {
        ++start;
      }
    }
    // Pairs like acquire and release can only go together.
    for (std::size_t i = 0; i < trace.size(); ++i) {
      for (std::size_t j = i + 1; j < trace.size(); ++j) {
        std::vector<Event> smaller = trace;
        smaller.erase(smaller.begin() + static_cast<std::ptrdiff_t>(j));
        smaller.erase(smaller.begin() + static_cast<std::ptrdiff_t>(i));
        if (chunk == 1 && IsWellFormed(smaller) && fails(smaller)) {
          trace = std::move(smaller);
          shrunk = true;
          j = i;
          if (i >= trace.size()) break;
        }
      }
    }
    if (!shrunk || chunk > 1) chunk /= 2;
  }
  return trace;
}

std::string PrintTrace(const std::vector<Event>& trace) {
  std::string text;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const Event& e = trace[i];
    std::array<char, 200> line;
    std::snprintf(line.data(), line.size(),
                  "%3zu T%u %-15s %#llx+%llu ip=%#llx other=%u aux=%#llx order=%d\n", i, e.thread,
                  NameOf(e.kind), static_cast<unsigned long long>(e.address),
                  static_cast<unsigned long long>(e.size), static_cast<unsigned long long>(e.ip),
                  e.other, static_cast<unsigned long long>(e.aux), static_cast<int>(e.order));
    text += line.data();
  }
  return text;
}

std::uint64_t FromEnvironment(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace trapline
