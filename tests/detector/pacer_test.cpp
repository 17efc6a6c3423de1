// PACER: what it finds at which sampling rate, and what it saves.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/detector/trace_builder.h"
#include "tests/support/reference.h"
#include "tests/support/trace_generator.h"

namespace trapline {
namespace {

constexpr std::uint64_t kX = 0x1000;

// A run with much properly locked work and one race: T1 writes kX early, T2 reads it `distance`
// events later.
std::vector<Event> RunWithPlantedRace(std::size_t distance) {
  std::vector<Event> trace{Fork(0, 1), Fork(0, 2)};
  const auto work = [&](std::size_t until) {
    for (std::uint64_t i = 0; trace.size() < until; ++i) {
      const auto t = static_cast<ThreadId>(1 + i % 2);
      // Each thread has locks of its own, so that nothing orders the planted accesses.
      const std::uint64_t lock = 0x100 * t;
      trace.push_back(Acquire(t, lock));
      trace.push_back(Write(t, 0x100000 * t + 8 * (i % 32)));
      trace.push_back(Release(t, lock));
    }
  };
  work(300);
  trace.push_back(Write(1, kX, 8, 0xa));
  work(300 + distance);
  trace.push_back(Read(2, kX, 8, 0xb));
  return trace;
}

// Whether `found` of `runs` lies within 4.5 standard deviations of the rate (once in 150,000 by
// chance; the seeds are fixed, so that the answer is always the same).
void ExpectBinomial(int found, int runs, double rate) {
  const double mean = runs * rate;
  const double deviation = std::sqrt(runs * rate * (1 - rate));
  EXPECT_LE(std::abs(found - mean), 4.5 * deviation + 1e-9)
      << found << " of " << runs << " at " << rate;
}

class PacerRate : public testing::TestWithParam<double> {};

TEST_P(PacerRate, FindsARaceAsOftenAsItSamples) {
  const double rate = GetParam();
  constexpr int kRuns = 4000;
  for (const std::size_t distance :
       {10, 2000}) {  // within about one period, and many periods apart
    const std::vector<Event> trace = RunWithPlantedRace(distance);
    int found = 0;
    for (int run = 1; run <= kRuns; ++run) {
      DetectorOptions options;
      options.sampling_rate = rate;
      options.seed = static_cast<std::uint64_t>(run);
      options.sampling_period = 64;
      const auto detector = RunOn("pacer", trace, options);
      ASSERT_LE(detector->race_count(), 1U);
      found += detector->race_count() == 1;
    }
    ExpectBinomial(found, kRuns, rate);
  }
}

INSTANTIATE_TEST_SUITE_P(Rates, PacerRate, testing::Values(0.01, 0.03, 0.10, 1.0));

TEST(Pacer, SamplingEventsDecide) {
  const Event begin = MakeEvent(EventKind::kSamplingBegin, 0);
  const Event end = MakeEvent(EventKind::kSamplingEnd, 0);
  EXPECT_EQ(RunOn("pacer", {begin, Fork(0, 1), Write(0, kX), end, Read(1, kX)})->race_count(), 1U);
  EXPECT_EQ(RunOn("pacer", {end, Fork(0, 1), Write(0, kX), begin, Read(1, kX)})->race_count(), 0U);
}

// At any rate what it reports is a race, and its first access was the last that races.
TEST(Pacer, NeverReportsWhatIsNoRace) {
  int reported = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    TraceOptions options;
    options.seed = seed;
    const std::vector<Event> trace = GenerateTrace(options);
    const ReferenceRaces truth = FindRaces(trace, ReferenceOrder::kHappensBefore);
    DetectorOptions sampling;
    sampling.sampling_rate = 0.5;
    sampling.seed = seed;
    sampling.sampling_period = 1 + seed % 16;
    const auto detector = RunOn("pacer", trace, sampling);
    for (const Race& race : detector->races()) {
      ++reported;
      ASSERT_TRUE(truth.pairs.contains({race.first.index, race.second.index}))
          << "seed " << seed << ": " << race.first.index << ", " << race.second.index << "\n"
          << PrintTrace(trace);
    }
  }
  EXPECT_GT(reported, 1000);
}

TEST(Pacer, RemembersNothingWhileItDoesNotSample) {
  DetectorOptions options;
  options.sampling_rate = 0;
  const auto detector = RunOn("pacer", RunWithPlantedRace(2000), options);
  std::uint64_t accesses = 0;
  for (const Statistic& statistic : detector->statistics()) {
    if (statistic.name == "sampled accesses") {
      accesses = statistic.whole;
      EXPECT_EQ(statistic.value, 0U);
    }
    if (statistic.name == "accesses to unsampled memory") {
      EXPECT_EQ(statistic.value, accesses);
    }
    if (statistic.name == "clock copies, deep") {
      EXPECT_EQ(statistic.value, 0U);
    }
  }
  EXPECT_GT(accesses, 100U);
}

}  // namespace
}  // namespace trapline
