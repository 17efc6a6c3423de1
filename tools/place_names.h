// Places of the program as a user names them on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trapline {

// Bytes [begin, end) of the program's memory.
struct AddressRange {
  std::uint64_t begin = 0, end = 0;
};

// ADDRESS+LENGTH, both decimal or hexadecimal with 0x, LENGTH in bytes. Nothing if `text` is not
// one, or names no memory a program can have.
std::optional<AddressRange> ParseAddressRange(const std::string& text);

// Whether `text` names a module where the name of a function, variable or source file could stand.
bool NamesSharedLibrary(const std::string& text);

// Which of the places that a user named were met, by this process or those that it forked: one that
// was not may be a mistake. Thread-safe.
class PlaceUse {
 public:
  PlaceUse();
  ~PlaceUse();
  PlaceUse(const PlaceUse&) = delete;
  PlaceUse& operator=(const PlaceUse&) = delete;

  // What is to be set to 1 when the place `text` of `option` ("--untrack") was met. Valid as long
  // as this object. Before any process is forked.
  std::uint8_t* MarkOf(const std::string& option, const std::string& text);
  // Another program may meet places that this one does not: nothing is known of any from now on.
  void Forget() { marks_[kMost - 1] = 1; }
  // Lines for the user on those that were not met, each ended.
  std::string Unmet() const;

 private:
  static constexpr std::size_t kMost = 4096;  // with more, nothing is known
  struct Place {
    std::string option, text;
    const std::uint8_t* met;
  };
  std::vector<Place> places_;
  std::uint8_t* marks_ = nullptr;  // shared with forked processes
};

// Immutable, but for what it notes in the PlaceUse.
class PlaceNames {
 public:
  // Each of `texts`, of `option`, is an ADDRESS+LENGTH or else a glob on names. `use` must outlive
  // this object.
  PlaceNames(const std::string& option, const std::vector<std::string>& texts, PlaceUse& use);

  bool has_globs() const { return !globs_.empty(); }
  bool has_ranges() const { return !ranges_.empty(); }

  // Whether a glob matches the name, of a function with or without its parameters.
  bool Match(const std::string& name) const;
  // Whether [begin, end) lies in one range, or has a byte in any.
  bool Cover(std::uint64_t begin, std::uint64_t end) const;
  bool Touch(std::uint64_t begin, std::uint64_t end) const;

 private:
  struct Glob {
    std::string text;
    std::uint8_t* met;
  };
  struct Range {
    AddressRange bytes;
    std::uint8_t* met;
  };
  std::vector<Glob> globs_;
  std::vector<Range> ranges_;
};

}  // namespace trapline
