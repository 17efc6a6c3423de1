#include "hypervisor/cache_admission.h"

#include <algorithm>

namespace trapline {
namespace {

// To fill a half takes some 0.2 s of translation, which is to be a small share of the time. `rustc
// -O` of forty lines, whose code in use is several times as large: 71 s, without admission not in
// 200.
constexpr std::uint64_t kShortLife = 4'000'000'000, kLongLife = 16'000'000'000;  // ns
constexpr unsigned kFactor = 4;

}  // namespace

void CacheAdmission::OnFull(std::uint64_t now) {
  const std::uint64_t life = now - since_;
  since_ = now;
  requests_.fill(0);
  if (life < kShortLife) threshold_ = std::min(threshold_ * kFactor, most_);
  if (life > kLongLife) threshold_ = std::max(threshold_ / kFactor, least_);
}

bool CacheAdmission::Admits(std::uint64_t rip) {
  if (threshold_ == 1) return true;
  constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;  // of 2^64
  std::uint8_t& requests = requests_[rip * kGoldenRatio >> (64 - kHashBits)];
  if (++requests >= threshold_) {
    requests = 0;
    return true;
  }
  ++declined_;
  return false;
}

}  // namespace trapline
