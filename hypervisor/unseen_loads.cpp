#include "hypervisor/unseen_loads.h"

#include "detector/hash.h"
#include "guest-agent/sector_use.h"

namespace trapline {

namespace {

// The bits of more_reads_: a word of it has one for each 4 bytes of an area of 256, and the words
// of an area, of which two of eight are used, lie in one line of the cache, so that who reads one
// address after the other stays there (Putze, Sanders and Singler, Cache-, Hash- and
// Space-Efficient Bloom Filters, 2007).
constexpr unsigned kLineBits = 11;  // log2 of the lines
constexpr std::size_t kWordsOfLine = 8;

// Calls visit(word, bit) for the two bits of an address.
template <class Visit>
void ForEachBit(std::uint64_t address, Visit&& visit) {
  constexpr unsigned kUnit = 4, kUnits = 64;  // bytes, and how many are an area
  const std::uint64_t hash = HashOf(address / (kUnit * kUnits));
  const std::uint64_t line = (hash >> (64 - kLineBits)) * kWordsOfLine;
  const std::uint64_t first = hash % kWordsOfLine;
  const std::uint64_t second =
      (first + 1 + hash / kWordsOfLine % (kWordsOfLine - 1)) % kWordsOfLine;
  // Turned, for many may lie at the same place of their areas, and twice, for others may have both
  // words.
  const std::uint64_t at = address / kUnit;
  visit(line + first, std::uint64_t{1} << (at + hash / 64) % kUnits);
  visit(line + second, std::uint64_t{1} << (at + hash / 4096) % kUnits);
}

}  // namespace

void UnseenLoads::NoteMore(std::uint64_t address) {
  if (more_reads_.empty()) more_reads_.resize(kWordsOfLine << kLineBits);
  ForEachBit(address, [&](std::uint64_t word, std::uint64_t bit) { more_reads_[word] |= bit; });
}

bool UnseenLoads::HasMore(std::uint64_t address) const {
  bool may = true;
  ForEachBit(address, [&](std::uint64_t word, std::uint64_t bit) {
    may = may && (more_reads_[word] & bit) != 0;
  });
  return may;
}

bool UnseenLoads::MayReadAgain(std::uint64_t address) const {
  const bool is_second = address % (2 * kHalf) == kHalf;
  const auto has_it = [&](std::uint64_t read) {
    return (read & ~kWide) == address || (is_second && read == ((address - kHalf) | kWide));
  };
  if (std::ranges::any_of(reads_, has_it)) return true;
  return !more_reads_.empty() && (HasMore(address) || (is_second && HasMore(address - kHalf)));
}

void UnseenLoads::Watch(const Word& word) {
  constexpr std::size_t kMost = 256;
  if (std::find(watched_.begin(), watched_.end(), word) != watched_.end()) return;
  if (watched_.size() == kMost) {
    const auto oldest = std::find_if(watched_.begin(), watched_.end(), [](const Word& other) {
      return other.size < agent::kSectorSize;
    });
    if (oldest == watched_.end()) {
      // Of sectors none may be missed: what lies between two is watched, too.
      Word& last = watched_.back();
      const std::uint64_t end = std::max(last.address + last.size, word.address + word.size);
      last.address = std::min(last.address, word.address);
      last.size = end - last.address;
      known_ = std::min(known_, watched_.size() - 1);
      return;
    }
    if (static_cast<std::size_t>(oldest - watched_.begin()) < known_) --known_;
    watched_.erase(oldest);
  }
  watched_.push_back(word);
}

}  // namespace trapline
