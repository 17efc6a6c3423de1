#include "detector/lite_race.h"

#include <algorithm>

#include "detector/factory.h"

namespace trapline {

bool LiteRace::Sampled(const Event& event) {
  const std::uint64_t key = event.ip >> kRegionBits | std::uint64_t{event.thread} << 40;
  Sampler& sampler = samplers_[key];
  if (sampler.skip > 0) {
    --sampler.skip;
    return false;
  }
  if (--sampler.sample == 0) {
    sampler.period = std::min(sampler.period * 10, kLongestPeriod);
    // Somewhat more or less than the rate asks for, so that other runs see other accesses.
    const std::uint32_t pause = kBurst * (sampler.period - 1);
    sampler.skip = pause / 2 + static_cast<std::uint32_t>(random_() % pause);
    sampler.sample = kBurst;
  }
  return true;
}

void LiteRace::OnPlain(const Event& event, std::uint64_t index) {
  ++accesses_;
  if (!Sampled(event)) return;
  ++sampled_;
  const auto now = synchronisation_.NowOf(event);
  if (analysis_.OnAccess(event, index, now.epoch, now.clock, &race_log_))
    CheckAgainstAtomics(event, index);
}

void LiteRace::CheckAgainstPlain(const Event& atomic, std::uint64_t index) {
  analysis_.Check(atomic, index, synchronisation_.ClockOf(atomic.thread), &race_log_);
}

void LiteRace::OnClear(std::uint64_t address, std::uint64_t size) {
  analysis_.Clear(address, size);
  ClearAtomics(address, size);
}

void LiteRace::OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  analysis_.Copy(destination, source, size);
  CopyAtomics(destination, source, size);
}

std::vector<Statistic> LiteRace::statistics() const {
  std::vector<Statistic> all{{"sampled accesses", sampled_, accesses_}};
  for (Statistic& rule : analysis_.statistics()) all.push_back(std::move(rule));
  all.push_back({"vector clock operations", synchronisation_.operations()});
  return all;
}

template std::unique_ptr<Detector> Make<LiteRace>(const DetectorOptions&);

}  // namespace trapline
