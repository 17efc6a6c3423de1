#include "tools/place_names.h"

#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace trapline {
namespace {

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

PlaceNames::PlaceNames(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (const auto range = ParseAddressRange(text)) {
      ranges_.push_back(*range);
    } else {
      globs_.push_back(text);
    }
  }
}

bool PlaceNames::Match(const std::string& name) const {
  if (name.empty() || globs_.empty()) return false;
  // A template's arguments may have parentheses of their own; the parameters come last.
  const std::string bare =
      name.ends_with(')') || name.ends_with(" const") ? name.substr(0, name.rfind('(')) : name;
  return std::any_of(globs_.begin(), globs_.end(), [&](const std::string& glob) {
    return fnmatch(glob.c_str(), name.c_str(), 0) == 0 ||
           fnmatch(glob.c_str(), bare.c_str(), 0) == 0;
  });
}

bool PlaceNames::Cover(std::uint64_t begin, std::uint64_t end) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const AddressRange& range) {
    return range.begin <= begin && end <= range.end;
  });
}

bool PlaceNames::Touch(std::uint64_t begin, std::uint64_t end) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const AddressRange& range) {
    return range.begin < end && begin < range.end;
  });
}

}  // namespace trapline
