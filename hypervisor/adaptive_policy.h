// When a thread under a policy by which pages have owners leaves the code cache for native code,
// and for how long it stays in the cache once it is back (docs/detection.md, "Hot code").
#pragma once

#include <algorithm>
#include <cstdint>

namespace trapline {

// Of one thread; not thread-safe. A *stint* is the time that the thread runs natively, from when it
// leaves the cache until it is back. All times are the thread's processor time, in nanoseconds.
class AdaptivePolicy {
 public:
  // `exit_cost`: what an exit from the guest to the monitor and back takes by itself. `generation`:
  // Carrier.
  explicit AdaptivePolicy(std::uint64_t exit_cost, unsigned generation = 0);

  // Accesses count from now on. `hot_after`: TrackOptions. Returns how many accesses the thread
  // makes in the cache before native code is tried for the first time: half as many each time, for
  // a program that makes short threads over and over has its first thread start as often; and with
  // each generation, an eighth at least.
  std::int64_t Start(std::uint64_t now, std::uint32_t hot_after);

  // A stint begins. `accesses_left`: how many the thread was still to make in the cache, less than
  // 0 if it has made more. `repeats`: how many of all its accesses were repeats so far; a smaller
  // number than the last one was counted anew, as a forked child does.
  void BeginStint(std::uint64_t now, std::int64_t accesses_left, std::uint64_t repeats);
  // The thread is out of the guest in a stint, and has been handled.
  void BeginExit(std::uint64_t now) { exit_since_ = now; }
  void EndExit(std::uint64_t now) { exits_took_ += now - exit_since_ + exit_cost_; }
  // A page fault in the code cache has been handled, which took so long.
  void CountCacheFault(std::uint64_t took) { cache_faults_took_ += took + exit_cost_; }
  // The stint ends at the exit that began last. `rewatched`: Carrier. Returns how many accesses the
  // thread makes in the cache before native code is tried again: twice as many as last time if the
  // stint has not paid, else half as many. Where that is many, few now and then (TriesAgain). Fewer
  // still if they took long last time, unless hot_after says how many.
  std::int64_t EndStint(std::uint64_t now, std::uint64_t rewatched);
  // About what EndStint would return.
  std::int64_t next_stay() const { return std::min(stay_, patience_); }
  // Whether stays in the cache are short, since native stints pay; not where one is short so that
  // native code is tried again.
  bool stays_briefly() const;
  // Whether stays are long, since native stints do not pay.
  bool stays_long() const;
  // Whether the present stay is to be in partial code (GuestCodeCache): it is long, or the thread
  // is in the cache for longer than natively, and so little is told there that it is the checks
  // that take the time.
  bool prefers_partial() const;
  // How many writes to settled memory, which is not told of, end the present stay in the cache,
  // too: it is to be short even if hardly an access is told. 0: any number.
  std::int64_t most_writes() const;
  // Of the present stint, or of the last one.
  std::uint64_t stint_began() const { return native_since_; }

  // From 0, where up to three quarters of the last accesses in the cache were repeats, to 1, where
  // seven eighths and more were: a repeat takes some 15 ns, an access that is told 300.
  double WeightOfRepeats() const;

 private:
  // A stint has not paid. Whether native code is to be tried once more soon, as it is now and then
  // where stays are long: what others have used is known anew.
  bool TriesAgain();

  const std::uint64_t exit_cost_;
  // When the thread began to run natively, and for how long it did last; when the present exit
  // began to be handled, how much the exits in between have taken, and how much the page faults in
  // the code cache since it was native before.
  std::uint64_t native_since_ = 0, stint_took_ = 0, exit_since_ = 0, exits_took_ = 0,
                cache_faults_took_ = 0;
  // Accesses in the code cache before native code is tried again, and those of the present stay, or
  // of the last one, which differ in the first.
  std::int64_t patience_ = 0, shortest_patience_ = 0, stay_ = 0;
  // How many it was to make when accesses began to count last; 0: they never have.
  std::int64_t first_patience_ = 0;
  // Accesses in the code cache lately that the filter did not skip, and how many of them were
  // repeats; how many repeats there had been when the thread became native last.
  std::int64_t recent_accesses_ = 0, recent_repeats_ = 0;
  std::uint64_t repeats_then_ = 0;
  // When the thread came to the code cache last; how long the last stay took, and how long
  // kPatience accesses did in it, page faults apart (ns); whether that matters.
  std::uint64_t cached_since_ = 0, stay_took_ = 0;
  double patience_took_ = 0;
  bool bounds_time_ = true;
  // How many stints that do not pay end the present row of tries; 0: there is none. How many long
  // stays there are until the next one, and how many there will be after that.
  unsigned tries_ = 0, stays_until_tries_ = 1, stays_between_tries_ = 1;
};

}  // namespace trapline
