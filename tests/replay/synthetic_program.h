// The event stream of a made-up parallel program, for tests and benchmarks of the log: loops over
// arrays and tables, critical sections, a few real races. Well-formed: forks come first, locks are
// held by one thread, joins last.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <vector>

#include "detector/event.h"

namespace trapline {

struct SyntheticOptions {
  std::uint32_t threads = 8;
  std::uint64_t events = 100'000;         // about as many
  double burst = 20;                      // mean number of events before another thread's turn
  std::uint32_t loops = 200;              // distinct pieces of code
  std::uint64_t array_bytes = 128 << 10;  // of a thread's share of an array; there are 8
  std::uint64_t table_bytes = 1 << 20;    // of read-only tables that are accessed at random
  double critical = 0.1;                  // share of loop rounds that are critical sections
  std::uint32_t racy_loops = 3;           // loops that write shared memory without a lock
  std::uint64_t seed = 1;
};

class SyntheticProgram {
 public:
  explicit SyntheticProgram(const SyntheticOptions& options)
      : options_(options), random_(options.seed), threads_(options.threads) {
    for (std::uint32_t i = 0; i < options.loops; ++i) loops_.push_back(MakeLoop(i));
    for (std::uint32_t thread = 1; thread < options.threads; ++thread) {
      Event& fork = Push(EventKind::kFork, 0, 0, 0, kCode);
      fork.other = thread;
    }
  }

  // Appends the next events to `out` (at least one, a few at most); false at the end.
  bool Next(std::vector<Event>* out) {
    if (done_) return false;
    out->insert(out->end(), pending_.begin(), pending_.end());
    made_ += pending_.size();
    pending_.clear();
    if (made_ >= options_.events) {
      for (std::uint32_t thread = 1; thread < options_.threads; ++thread) {
        Push(EventKind::kThreadEnd, thread, 0, 0, 0);
        Event& join = Push(EventKind::kJoin, 0, 0, 0, kCode + 8);
        join.other = thread;
      }
      out->insert(out->end(), pending_.begin(), pending_.end());
      done_ = true;
      return true;
    }
    if (left_ == 0) {
      thread_ = static_cast<ThreadId>(Random(options_.threads));
      left_ = 1 + static_cast<std::uint64_t>(
                      std::exponential_distribution<double>(1 / options_.burst)(random_));
    }
    Step(threads_[thread_]);
    return true;
  }

 private:
  static constexpr std::uint64_t kCode = 0x401000;
  static constexpr std::uint64_t kArrays = 0x7f0000000000;
  static constexpr std::uint64_t kTables = 0x600000000000;
  static constexpr std::uint64_t kShared = 0x500000000000;

  static constexpr std::uint64_t kElementBytes[] = {1, 4, 4, 4, 8, 8, 8, 16};
  static constexpr std::uint64_t kArraysPerThread = std::size(kElementBytes);

  enum class Pattern { kStride, kTable, kScalar };
  struct Site {
    EventKind kind;
    Pattern pattern;
    std::uint64_t size;
    std::uint64_t offset;
  };
  struct Loop {
    std::uint64_t ip;
    std::vector<Site> sites;
    bool critical = false;
    bool racy = false;
    std::uint64_t lock = 0;
  };
  struct Thread {
    std::uint32_t loop = 0;
    std::uint64_t rounds = 0;    // left
    std::uint64_t position = 0;  // in its array share
    std::size_t site = 0;
  };

  std::uint64_t Random(std::uint64_t below) { return random_() % below; }

  Loop MakeLoop(std::uint32_t number) {
    Loop loop;
    loop.ip = kCode + 0x100 + number * std::uint64_t{0x200};
    loop.critical = static_cast<double>(Random(1000)) < 1000 * options_.critical;
    loop.racy = number < options_.racy_loops;
    loop.lock = kShared + 0x1000000 + Random(64) * 64;
    const std::uint64_t sites = 2 + Random(8);
    for (std::uint64_t i = 0; i < sites; ++i) {
      const std::uint64_t pick = Random(10);
      Site site{};
      site.pattern = pick < 5 ? Pattern::kStride : pick < 7 ? Pattern::kTable : Pattern::kScalar;
      site.kind =
          site.pattern != Pattern::kTable && Random(3) == 0 ? EventKind::kWrite : EventKind::kRead;
      // An array's elements have one size; scalars and table entries have 8 bytes.
      site.offset = Random(kArraysPerThread);
      site.size = site.pattern == Pattern::kStride ? kElementBytes[site.offset] : 8;
      if (site.pattern != Pattern::kStride) site.offset = Random(64) * 8;
      loop.sites.push_back(site);
    }
    return loop;
  }

  Event& Push(EventKind kind, ThreadId thread, std::uint64_t address, std::uint64_t size,
              std::uint64_t ip) {
    Event& event = pending_.emplace_back();
    event.kind = kind;
    event.thread = thread;
    event.address = address;
    event.size = size;
    event.ip = ip;
    if (left_ > 0) --left_;
    return event;
  }

  void Step(Thread& thread) {
    if (thread.rounds == 0) {
      thread.loop = static_cast<std::uint32_t>(Random(loops_.size()));
      thread.rounds = 1 + Random(2000);
      thread.site = 0;
    }
    const Loop& loop = loops_[thread.loop];
    if (loop.critical) {
      // One round is one critical section on data that only this lock guards.
      const std::uint64_t lock = loop.lock;
      Push(EventKind::kAcquire, thread_, lock, 0, loop.ip);
      for (std::size_t i = 0; i < loop.sites.size(); ++i) {
        const Site& site = loop.sites[i];
        Push(site.kind, thread_, lock + 0x100000 + site.offset % 8 * 8, 8, loop.ip + 8 + 5 * i);
      }
      Push(EventKind::kRelease, thread_, lock, 0, loop.ip + 4);
      thread.rounds -= std::min<std::uint64_t>(thread.rounds, 20);
      return;
    }
    const Site& site = loop.sites[thread.site];
    const std::uint64_t ip = loop.ip + 8 + 5 * thread.site;
    std::uint64_t address = 0;
    switch (site.pattern) {
      case Pattern::kStride:
        address = kArrays + thread_ * 0x100000000 + site.offset * 0x10000000 +
                  (thread.position * site.size) % options_.array_bytes;
        break;
      case Pattern::kTable:
        address = kTables + Random(options_.table_bytes / 8) * 8;
        break;
      case Pattern::kScalar:
        address = loop.racy ? kShared + site.offset
                            : kArrays + thread_ * 0x100000000 - 4096 + site.offset;
        break;
    }
    Push(site.kind, thread_, address, site.size, ip);
    if (++thread.site == loop.sites.size()) {
      thread.site = 0;
      ++thread.position;
      --thread.rounds;
    }
  }

  SyntheticOptions options_;
  std::mt19937_64 random_;
  std::vector<Loop> loops_;
  std::vector<Thread> threads_;
  std::vector<Event> pending_;
  ThreadId thread_ = 0;
  std::uint64_t left_ = 0;
  std::uint64_t made_ = 0;
  bool done_ = false;
};

}  // namespace trapline
