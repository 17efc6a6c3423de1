#include "tools/tracked_places.h"

#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace trapline {
namespace {

constexpr std::size_t kMostAnswers = 1 << 20;
constexpr std::uint64_t kEndOfMemory = std::uint64_t{1} << 47;

std::optional<std::uint64_t> ParseNumber(const std::string& text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  char* end = nullptr;
  errno = 0;
  const std::uint64_t value = std::strtoull(text.c_str(), &end, hexadecimal ? 16 : 10);
  if (errno != 0 || *end != 0 || (hexadecimal && text.size() == 2)) return std::nullopt;
  return value;
}

bool IsModuleName(const std::string& text) {
  return text.find('/') != std::string::npos || text.find(".so") != std::string::npos;
}

bool Matches(const std::vector<std::string>& globs, const std::string& name) {
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
    return fnmatch(glob.c_str(), name.c_str(), 0) == 0;
  });
}

bool Covers(const std::vector<AddressRange>& ranges, std::uint64_t begin, std::uint64_t end) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const AddressRange& range) {
    return range.begin <= begin && end <= range.end;
  });
}

bool Touches(const std::vector<AddressRange>& ranges, std::uint64_t begin, std::uint64_t end) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const AddressRange& range) {
    return range.begin < end && begin < range.end;
  });
}

}  // namespace

std::optional<AddressRange> ParseAddressRange(const std::string& text) {
  const std::size_t plus = text.find('+');
  if (plus == std::string::npos) return std::nullopt;
  const auto address = ParseNumber(text.substr(0, plus));
  const auto length = ParseNumber(text.substr(plus + 1));
  if (!address || !length || *length == 0 || *address >= kEndOfMemory ||
      *length > kEndOfMemory - *address) {
    return std::nullopt;
  }
  return AddressRange{*address, *address + *length};
}

TrackedPlaces::Names TrackedPlaces::Sort(const std::vector<std::string>& texts) {
  Names names;
  for (const std::string& text : texts) {
    if (const auto range = ParseAddressRange(text)) {
      names.ranges.push_back(*range);
    } else if (!IsModuleName(text)) {
      names.globs.push_back(text);
    }
  }
  return names;
}

TrackedPlaces::TrackedPlaces(const std::vector<std::string>& track,
                             const std::vector<std::string>& untrack, Symbolizer& symbolizer)
    : track_(Sort(track)), untrack_(Sort(untrack)), symbolizer_(symbolizer) {}

TrackedPlaces::Match TrackedPlaces::MatchName(const std::string& name) const {
  if (name.empty()) return {};
  // A template's arguments may have parentheses of their own; the parameters come last.
  const std::string bare =
      name.ends_with(')') || name.ends_with(" const") ? name.substr(0, name.rfind('(')) : name;
  const auto in = [&](const Names& names) {
    return Matches(names.globs, name) || Matches(names.globs, bare);
  };
  return {in(untrack_), in(track_)};
}

TrackedPlaces::Match TrackedPlaces::MatchCode(std::uint64_t ip) {
  if (const auto known = code_.find(ip); known != code_.end()) return known->second;
  Match match;
  for (const SourceFrame& frame : symbolizer_.ResolveCode(ip).frames)
    match.Add(MatchName(frame.function));
  if (code_.size() >= kMostAnswers) code_.clear();
  code_.emplace(ip, match);
  return match;
}

TrackedPlaces::Match TrackedPlaces::MatchVariable(std::uint64_t address) {
  if (const auto known = data_.find(address); known != data_.end()) return known->second;
  const auto variable = symbolizer_.ResolveData(address);
  const Match match = variable ? MatchName(variable->symbol) : Match{};
  if (data_.size() >= kMostAnswers) data_.clear();
  data_.emplace(address, match);
  return match;
}

bool TrackedPlaces::Excludes(std::uint64_t ip, std::uint64_t address, std::uint64_t size) {
  Match match;
  if (!untrack_.ranges.empty()) {
    match.untracked = Covers(untrack_.ranges, address, address + size);
    match.tracked = Touches(track_.ranges, address, address + size);
  }
  if (!untrack_.globs.empty()) {
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
