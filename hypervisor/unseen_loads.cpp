#include "hypervisor/unseen_loads.h"

#include "detector/hash.h"
#include "guest-agent/sector_use.h"

namespace trapline {

namespace {

constexpr unsigned kBits = 20;  // log2 of the bits of more_reads_

// Calls visit(word, bit) for the two bits of an address.
template <class Visit>
void ForEachBit(std::uint64_t address, Visit&& visit) {
  const std::uint64_t hash = HashOf(address);
  for (const unsigned shift : {64 - kBits, 64 - 2 * kBits}) {
    const std::uint64_t at = hash >> shift & ((1u << kBits) - 1);
    visit(at / 64, std::uint64_t{1} << at % 64);
  }
}

}  // namespace

void UnseenLoads::NoteMore(std::uint64_t address) {
  if (more_reads_.empty()) more_reads_.resize((std::size_t{1} << kBits) / 64);
  ForEachBit(address, [&](std::uint64_t word, std::uint64_t bit) { more_reads_[word] |= bit; });
}

bool UnseenLoads::MayReadAgain(std::uint64_t address) const {
  if (std::find(reads_.begin(), reads_.end(), address) != reads_.end()) return true;
  if (more_reads_.empty()) return false;
  bool may = true;
  ForEachBit(address, [&](std::uint64_t word, std::uint64_t bit) {
    may = may && (more_reads_[word] & bit) != 0;
  });
  return may;
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
