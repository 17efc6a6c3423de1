#include "tools/tracked_places.h"

#include <utility>

namespace trapline {
namespace {

constexpr std::size_t kMostPlaces = 1 << 20;

bool IsModuleName(const std::string& text) {
  return text.find('/') != std::string::npos || NamesSharedLibrary(text);
}

std::vector<std::string> WithoutModules(std::vector<std::string> texts) {
  std::erase_if(texts, [](const std::string& text) {
    return IsModuleName(text) && !ParseAddressRange(text);
  });
  return texts;
}

}  // namespace

TrackedPlaces::TrackedPlaces(const std::vector<std::string>& track,
                             const std::vector<std::string>& untrack, Symbolizer& symbolizer,
                             PlaceUse& use)
    : track_("--track", WithoutModules(track), use),
      untrack_("--untrack", WithoutModules(untrack), use),
      symbolizer_(symbolizer) {}

TrackedPlaces::Match TrackedPlaces::MatchName(const std::string& name) const {
  return {untrack_.Match(name), track_.Match(name)};
}

TrackedPlaces::Match TrackedPlaces::MatchCode(std::uint64_t ip) {
  if (const auto known = code_.find(ip); known != code_.end()) return known->second;
  Match match;
  for (const SourceFrame& frame : symbolizer_.ResolveCode(ip).frames)
    match.Add(MatchName(frame.function));
  if (code_.size() >= kMostPlaces) code_.clear();
  code_.emplace(ip, match);
  return match;
}

TrackedPlaces::Match TrackedPlaces::MatchVariable(std::uint64_t address) {
  if (const auto known = data_.find(address); known != data_.end()) return known->second;
  const auto variable = symbolizer_.ResolveData(address);
  const Match match = variable ? MatchName(variable->symbol) : Match{};
  if (data_.size() >= kMostPlaces) data_.clear();
  data_.emplace(address, match);
  return match;
}

bool TrackedPlaces::Excludes(std::uint64_t ip, std::uint64_t address, std::uint64_t size) {
  Match match;
  if (untrack_.has_ranges()) {
    match.untracked = untrack_.Cover(address, address + size);
    match.tracked = track_.Touch(address, address + size);
  }
  if (untrack_.has_globs()) {
    match.Add(MatchCode(ip));
    match.Add(MatchVariable(address));
  }
  return match.untracked && !match.tracked;
}

void TrackedPlaces::OnUnmap() {
  code_.clear();
  data_.clear();
}

}  // namespace trapline
