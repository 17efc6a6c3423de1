#include "hypervisor/unseen_loads.h"

#include "guest-agent/sector_use.h"

namespace trapline {

void UnseenLoads::Watch(const Word& word) {
  constexpr std::size_t kMost = 256;
  if (std::find(watched_.begin(), watched_.end(), word) != watched_.end()) return;
  taken_in_ = 0;
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
      return;
    }
    watched_.erase(oldest);
  }
  watched_.push_back(word);
}

}  // namespace trapline
