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

// Immutable.
class PlaceNames {
 public:
  // Each of `texts` is an ADDRESS+LENGTH or else a glob on names.
  explicit PlaceNames(const std::vector<std::string>& texts);

  bool has_globs() const { return !globs_.empty(); }
  bool has_ranges() const { return !ranges_.empty(); }

  // Whether a glob matches the name, of a function with or without its parameters.
  bool Match(const std::string& name) const;
  // Whether [begin, end) lies in one range, or has a byte in any.
  bool Cover(std::uint64_t begin, std::uint64_t end) const;
  bool Touch(std::uint64_t begin, std::uint64_t end) const;

 private:
  std::vector<std::string> globs_;
  std::vector<AddressRange> ranges_;
};

}  // namespace trapline
