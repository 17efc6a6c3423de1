#include "tools/place_names.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>

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

bool NamesSharedLibrary(const std::string& text) { return text.find(".so") != std::string::npos; }

PlaceUse::PlaceUse() {
  void* const memory =
      mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  marks_ = static_cast<std::uint8_t*>(memory);
}

PlaceUse::~PlaceUse() { munmap(marks_, kMost); }

std::uint8_t* PlaceUse::MarkOf(const std::string& option, const std::string& text) {
  const auto known = std::find_if(places_.begin(), places_.end(), [&](const Place& place) {
    return place.option == option && place.text == text;
  });
  const auto at = static_cast<std::size_t>(known - places_.begin());
  if (at >= kMost - 1) Forget();
  if (known == places_.end() && at < kMost - 1) places_.push_back({option, text, marks_ + at});
  return marks_ + std::min(at, kMost - 1);
}

std::string PlaceUse::Unmet() const {
  std::string text;
  if (marks_[kMost - 1] != 0) return text;
  for (const Place& place : places_) {
    if (*place.met != 0) continue;
    const bool tracks = place.option.ends_with("track");
    text += fmt::format("trapline: {}={} matched no {}\n", place.option, place.text,
                        ParseAddressRange(place.text) ? "access that was checked"
                        : tracks                      ? "module, function or variable"
                                 : "function, variable, source file or library");
  }
  return text;
}

PlaceNames::PlaceNames(const std::string& option, const std::vector<std::string>& texts,
                       PlaceUse& use) {
  for (const std::string& text : texts) {
    std::uint8_t* const met = use.MarkOf(option, text);
    if (const auto range = ParseAddressRange(text)) {
      ranges_.push_back({*range, met});
    } else {
      globs_.push_back({text, met});
    }
  }
}

bool PlaceNames::Match(const std::string& name) const {
  if (name.empty() || globs_.empty()) return false;
  // A template's arguments may have parentheses of their own; the parameters come last.
  const std::string bare =
      name.ends_with(')') || name.ends_with(" const") ? name.substr(0, name.rfind('(')) : name;
  bool matches = false;
  for (const Glob& glob : globs_) {
    if (fnmatch(glob.text.c_str(), name.c_str(), 0) != 0 &&
        fnmatch(glob.text.c_str(), bare.c_str(), 0) != 0) {
      continue;
    }
    *glob.met = 1;
    matches = true;
  }
  return matches;
}

bool PlaceNames::Cover(std::uint64_t begin, std::uint64_t end) const {
  bool covers = false;
  for (const Range& range : ranges_) {
    if (range.bytes.begin > begin || end > range.bytes.end) continue;
    *range.met = 1;
    covers = true;
  }
  return covers;
}

bool PlaceNames::Touch(std::uint64_t begin, std::uint64_t end) const {
  bool touches = false;
  for (const Range& range : ranges_) {
    if (range.bytes.begin >= end || begin >= range.bytes.end) continue;
    *range.met = 1;
    touches = true;
  }
  return touches;
}

}  // namespace trapline
