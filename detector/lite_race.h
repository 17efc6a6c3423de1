// LiteRace: FastTrack's rules on a sample of the accesses that favours cold code
// (Marino, Musuvathi and Narayanasamy, PLDI 2009; PACER, sections 2.3 and 5.3).
#pragma once

#include <cstdint>
#include <random>
#include <unordered_map>

#include "detector/fasttrack.h"

namespace trapline {

// Samples bursts of accesses of each pair of thread and code region, ever more rarely: all at
// first, then 10 %, 1 %, and in the end 0.1 %. All synchronisation is followed, so what it reports
// are races, but it consistently misses those between hot places. A region is 256 bytes of code, as
// events do not tell functions.
class LiteRace final : public HappensBeforeDetector<LiteRace, MomentClocks, MomentAtomics> {
 public:
  explicit LiteRace(const DetectorOptions& options)
      : HappensBeforeDetector(options), random_(options.seed) {}

  void OnPlain(const Event& event, std::uint64_t index);
  void CheckAgainstPlain(const Event& atomic, std::uint64_t index);
  void OnClear(std::uint64_t address, std::uint64_t size);
  void OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size);

  std::vector<Statistic> statistics() const override;
  std::string_view name() const override { return "literace"; }

 private:
  struct Sampler {
    std::uint32_t sample = kBurst;  // accesses still to be sampled
    std::uint32_t skip = 0;         // accesses then to be skipped
    std::uint32_t period = 1;       // one burst in so many: 1, 10, 100, 1000
  };
  static constexpr std::uint32_t kBurst = 1000;
  static constexpr std::uint32_t kLongestPeriod = 1000;
  static constexpr int kRegionBits = 8;

  bool Sampled(const Event& event);

  FastTrackAnalysis analysis_;
  std::unordered_map<std::uint64_t, Sampler> samplers_;  // by thread and region
  std::mt19937_64 random_;
  std::uint64_t sampled_ = 0;
  std::uint64_t accesses_ = 0;
};

}  // namespace trapline
