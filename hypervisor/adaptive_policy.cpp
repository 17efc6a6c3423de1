#include "hypervisor/adaptive_policy.h"

#include <algorithm>
#include <utility>

namespace trapline {
namespace {

// How many accesses a thread makes in the code cache before it tries native code: at first, and
// after it has met a shared page natively. Going out and back in costs as much as a few hundred
// that are told; with fewer, races are missed (docs/detection.md, "Hot code").
constexpr std::int64_t kFirstPatience = 32768;
constexpr std::int64_t kPatience = 512;
// After one stint that has not paid after another. Where it is 1 << 20 a thread that waits so long
// finds all pages in use by others, too, and hardly gets out any more, although native code would
// pay: radix took 13.5 s of processor time in eight runs of twelve, else 18 to 23. With 1 << 17 it
// is 13.5 each time, the others as before; with 1 << 15 barnes, fluidanimate, radiosity and canneal
// take 9% more, with 1 << 13 27%.
constexpr std::int64_t kLongestPatience = 1 << 17;
// Who stays so long, or longer, finds what others have used for just as long meanwhile, and native
// code is at a loss whatever it would gain: all threads stay for ever, where short stays would do.
// A page that is met in use is watched anew, so soon after it may well be free. So native code is
// tried so many times more before the next long stay, and as long as that does not help after so
// many long stays at most. bench/programs with two threads, seconds of processor time:
// water-nsquared 6.4 to 8.1 in fourteen runs instead of 6.2 to 13.5 in fifteen, six of them
// above 9. With 3 tries before every long stay, however often they had failed, radiosity took 44
// instead of 37, barnes, fluidanimate and canneal 6 to 11% more; so, as before (medians of three by
// turns).
constexpr std::int64_t kLongPatience = 8192;
constexpr unsigned kTries = 4, kMostStaysBetweenTries = 64;
// Such a try must show that native code is worth more than the cache, where that is slower by no
// more than usual. With 100, as for others, ocean with four threads took 18 s instead of 15.5; with
// 4 to 16 as before.
constexpr std::uint64_t kGainOfTry = 8;
// Where hot code seldom tells of an access, since its memory has settled, kPatience of them take
// long. So there are as many fewer as it takes them to be told in this time (ns), but some, since
// coming and going has its price. bench/programs, seconds of processor time, medians of three by
// turns: blackscholes 1.40 instead of 2.03 (2 ms: 1.43; 300 us: 1.32, but lu, ocean and
// streamcluster take 5 to 25% more), the others as before.
constexpr double kStayOfPatience = 1'000'000;
constexpr std::int64_t kShortestStay = 16;
// Likewise where hardly an access is told at all, but there are writes to settled memory: so many
// of them for each access, in stays that are to be shorter than so many accesses. bench/programs,
// seconds of processor time, four runs by turns: with 32 for each instead of 8 radix 19.8 instead
// of 16.6, lu, blackscholes and water-nsquared the same; without, blackscholes 4.6 instead of 1.9.
constexpr std::int64_t kWritesOfAccess = 8;
constexpr std::int64_t kCountingPatience = 4096;
// A stint pays if what is left of it without its exits, so many times over, is more than they took.
// Code in the cache is 3 to 60 times slower than natively (docs/cost.md), and much of what
// exits take is not saved by staying there, where the same pages fault. bench/programs, with 200
// instead of 20, seconds of processor time, medians of three by turns: radix 8.6 instead of 11.9,
// lu 1.9 instead of 2.4, the others as before. Where threads hand each other small blocks of
// memory, 200 is far too many: `fdfind -j2 . /usr/share/doc`, whose runs differ much, 5.6 to 8.9,
// with 100 4.2 to 6.5, with 60 4.0 to 5.0, with 20 3.3, but radiosity 22.8, 22.3 and 23.5, and
// x264 4.4, with 20 10.8.
constexpr std::uint64_t kGain = 100;
// Where nearly all accesses are repeats (guest-agent/repeats.h) code in the cache is less slow, and
// it is seen that a native stint's first 400 us go to KVM's mending of translations
// (docs/detection.md, "Hot code").
constexpr std::uint64_t kGainOverRepeats = 20;
constexpr std::uint64_t kRefill = 400'000;  // ns

}  // namespace

AdaptivePolicy::AdaptivePolicy(std::uint64_t exit_cost, unsigned generation)
    : exit_cost_(exit_cost) {
  // What a thread is made for over and over is checked by the first ones.
  constexpr unsigned kMostHalvings = 3;
  if (generation != 0)
    first_patience_ = kFirstPatience >> (std::min(generation, kMostHalvings) - 1);
}

std::int64_t AdaptivePolicy::Start(std::uint64_t now, std::uint32_t hot_after) {
  cached_since_ = now;
  bounds_time_ = hot_after == 0;
  shortest_patience_ = patience_ = hot_after != 0 ? hot_after : kPatience;
  tries_ = 0;
  stays_until_tries_ = stays_between_tries_ = 1;
  first_patience_ =
      std::max(first_patience_ != 0 ? first_patience_ / 2 : kFirstPatience, patience_);
  return stay_ = hot_after != 0 ? hot_after : first_patience_;
}

void AdaptivePolicy::BeginStint(std::uint64_t now, std::int64_t accesses_left,
                                std::uint64_t repeats) {
  native_since_ = now;
  exits_took_ = 0;
  const std::int64_t accesses = stay_ - accesses_left;
  stay_took_ = now - std::min(now, cached_since_ + cache_faults_took_);
  patience_took_ = static_cast<double>(stay_took_) * kPatience /
                   static_cast<double>(std::max<std::int64_t>(accesses, 1));
  const std::uint64_t repeats_in_stay = repeats - (repeats >= repeats_then_ ? repeats_then_ : 0);
  // One stint alone misleads, and what it leads to changes the next one's share.
  constexpr std::int64_t kStints = 16;
  recent_accesses_ += std::max<std::int64_t>(accesses, 0) - recent_accesses_ / kStints;
  recent_repeats_ += static_cast<std::int64_t>(repeats_in_stay) - recent_repeats_ / kStints;
  repeats_then_ = repeats;
}

std::int64_t AdaptivePolicy::EndStint(std::uint64_t now, std::uint64_t rewatched) {
  stint_took_ = std::max(exit_since_, native_since_) - native_since_;
  // To use a page that was hidden takes an exit, if only KVM's for its translation.
  exits_took_ += exit_cost_ * rewatched;
  const double repeats = WeightOfRepeats();
  // A stint that meets a shared page at once takes as long as to go in and out.
  const std::uint64_t lost =
      exits_took_ + exit_cost_ + static_cast<std::uint64_t>(repeats * kRefill);
  const std::uint64_t useful = stint_took_ - std::min(stint_took_, lost);
  const std::uint64_t gain =
      tries_ != 0 ? kGainOfTry
                  : kGain - static_cast<std::uint64_t>(repeats * (kGain - kGainOverRepeats));
  const bool paid = useful * gain >= exits_took_ + cache_faults_took_ + exit_cost_;
  const bool tries_again = !paid && TriesAgain();
  if (paid) {
    if (std::exchange(tries_, 0) != 0) stays_until_tries_ = stays_between_tries_ = 1;
    patience_ = std::max(patience_ / 2, shortest_patience_);
  } else if (!tries_again) {
    patience_ = std::max(std::min(patience_ * 2, kLongestPatience), shortest_patience_);
  }
  cache_faults_took_ = 0;
  cached_since_ = now;
  const double share =
      bounds_time_ ? std::min(1.0, kStayOfPatience / std::max(1.0, patience_took_)) : 1;
  const std::int64_t accesses = tries_again ? shortest_patience_ : patience_;
  return stay_ = std::max(static_cast<std::int64_t>(static_cast<double>(accesses) * share),
                          std::min(accesses, kShortestStay));
}

bool AdaptivePolicy::TriesAgain() {
  if (!stays_long()) return false;
  if (tries_ == 0) {
    if (--stays_until_tries_ != 0) return false;
    tries_ = kTries + 1;
  }
  if (--tries_ != 0) return true;
  // None has paid.
  stays_until_tries_ = stays_between_tries_;
  stays_between_tries_ = std::min(2 * stays_between_tries_, kMostStaysBetweenTries);
  return false;
}

bool AdaptivePolicy::stays_briefly() const { return patience_ < kCountingPatience; }

bool AdaptivePolicy::stays_long() const {
  return patience_ >= std::max(kLongPatience, 2 * shortest_patience_);
}

// bench/programs, seconds of processor time, medians by turns with long stays only: streamcluster
// with four threads 35 instead of 47, radix with two 10.2 (9.5 to 10.5 in four runs) instead
// of 13.3 (9.9 to 13.6). With 0.3 ms instead of 1, and however long the stints are, no more of
// that, and blackscholes 2.6 instead of 2.0.
bool AdaptivePolicy::prefers_partial() const {
  return stays_long() ||
         (bounds_time_ && patience_took_ >= kStayOfPatience && stay_took_ >= stint_took_);
}

std::int64_t AdaptivePolicy::most_writes() const {
  return stays_briefly() ? kWritesOfAccess * stay_ : 0;
}

double AdaptivePolicy::WeightOfRepeats() const {
  if (recent_accesses_ <= 0) return 0;
  const double share = static_cast<double>(recent_repeats_) / static_cast<double>(recent_accesses_);
  return std::clamp(8 * share - 6, 0.0, 1.0);
}

}  // namespace trapline
