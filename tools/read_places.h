// By which instruction each word was read, as far as a small table knows.
#pragma once

#include <array>
#include <cstdint>

namespace trapline {

// Not thread-safe.
class ReadPlaces {
 public:
  void Note(std::uint64_t address, std::uint64_t size, std::uint64_t ip) {
    if (size > entries_.size() * kWord) {
      entries_.fill({~std::uint64_t{0}, 0});
      return;
    }
    if (size == 0) return;
    for (std::uint64_t word = address / kWord; word <= (address + size - 1) / kWord; ++word) {
      Entry& entry = entries_[word % entries_.size()];
      if (entry.word != word) {
        // Who read the word before it was forgotten, if anybody, is not known.
        entry = {word, entry.word == 0 ? ip : 0};
      } else if (entry.ip != ip) {
        entry.ip = 0;
      }
    }
  }

  // The only instruction that may have read the bytes, which lie in one word; 0: there may be
  // several, or none.
  std::uint64_t OnlyReader(std::uint64_t address, std::uint64_t size) const {
    const std::uint64_t word = address / kWord;
    if (size == 0 || (address + size - 1) / kWord != word) return 0;
    const Entry& entry = entries_[word % entries_.size()];
    return entry.word == word ? entry.ip : 0;
  }

 private:
  static constexpr std::uint64_t kWord = 8;  // bytes
  struct Entry {
    std::uint64_t word = 0, ip = 0;
  };
  std::array<Entry, 4096> entries_{};
};

}  // namespace trapline
