// Memory of which hot code in the code cache need not tell.
//
// A sector (512 bytes) is settled when for some time one thread alone has used it, or all that used
// it have only read it. What hot code does there, as the sector has been used, is not told, just as
// it is not of native code on pages that are its thread's own or read-only. Whoever uses the sector
// otherwise is checked, and from then on so is everybody.
//
//     nobody --access--> one thread --read by another--> readers --write--> one thread
//                                   --write by another--> that thread
//     any of these --used otherwise, twice in a window of time--> shared
//     shared --some windows later--> nobody
//     any --atomic access--> atomic
//
// Sectors with atomic operations never settle, so that nobody misses what is released there.
//
// Kept by the agent (repeats.cpp, fast_repeats.S) and the monitor, and asked by the code cache's
// checks. A byte stands for all sectors whose addresses differ by multiples of 4 GiB. Freestanding.
#pragma once

#include <cstdint>

#include "guest-agent/layout.h"

namespace trapline::agent {

inline constexpr unsigned kSectorBits = TRAPLINE_SECTOR_BITS;
inline constexpr std::uint64_t kSectorSize = 1u << kSectorBits;
inline constexpr std::uint32_t kSectors = 1u << (32 - kSectorBits);  // that can be told apart
inline constexpr std::uint32_t kSectorsInGroup = 4096;

// Lower bits of a sector's byte. From 1 to kSectorUsers: the thread with this number alone uses it
// (BlockUse in repeats.h has the same numbers).
enum SectorUse : std::uint8_t {
  kSectorOfNobody = 0,
  kSectorOfReaders = TRAPLINE_SECTOR_OF_READERS,
  kSectorShared = TRAPLINE_SECTOR_SHARED,
  kSectorAtomic,
};
inline constexpr std::uint32_t kSectorUsers = 16;
static_assert(kSectorOfReaders > kSectorUsers);
// Upper bits: its age, the windows of time for which it has said so.
inline constexpr std::uint8_t kSectorAge = 1u << TRAPLINE_SECTOR_USE_BITS;
inline constexpr std::uint8_t kSectorUseMask = kSectorAge - 1;
inline constexpr unsigned kSectorStates = 4 * kSectorAge;  // different bytes
inline constexpr std::uint8_t kSettled = 2 * kSectorAge;
static_assert(kSectorAtomic <= kSectorUseMask);

// What a thread need not tell of a sector, by the sector's byte (ThreadPage::need_not_tell), and
// what a site would leave out (AccessSite::leaves_out).
inline constexpr std::uint8_t kLeaveOutReads = 1, kLeaveOutWrites = 2;

enum class SectorTouch : std::uint8_t { kRead, kWrite, kAtomic };

// A sector's byte after `user` has touched it; the same: as it was used before.
constexpr std::uint8_t SectorUseAfter(std::uint8_t before, SectorTouch touch, std::uint32_t user) {
  const std::uint8_t use = before & kSectorUseMask;
  if (touch == SectorTouch::kAtomic || use == kSectorAtomic) return kSectorAtomic;
  const bool read = touch == SectorTouch::kRead;
  if (use == kSectorShared || use == user || (use == kSectorOfReaders && read)) return before;
  if (user > kSectorUsers || (use != kSectorOfNobody && before < kSectorAge)) return kSectorShared;
  return use != kSectorOfNobody && read ? std::uint8_t{kSectorOfReaders}
                                        : static_cast<std::uint8_t>(user);
}

// A window of time later.
constexpr std::uint8_t OlderSectorUse(std::uint8_t byte) {
  constexpr std::uint8_t kOldest = kSectorStates - kSectorAge;
  const std::uint8_t use = byte & kSectorUseMask;
  if (use == kSectorShared && byte >= kOldest) return kSectorOfNobody;
  if (use == kSectorOfNobody || use == kSectorAtomic || (use != kSectorShared && byte >= kSettled))
    return byte;
  return static_cast<std::uint8_t>(byte + kSectorAge);
}

constexpr bool IsSettled(std::uint8_t byte) {
  return byte >= kSettled && (byte & kSectorUseMask) != kSectorShared;
}

// At TRAPLINE_SECTOR_USE.
struct SectorMemory {
  std::uint8_t uses[kSectors];                      // by IndexOf
  std::uint8_t in_use[kSectors / kSectorsInGroup];  // not 0: some sector of the group may be used

  static constexpr std::uint32_t IndexOf(std::uint64_t address) {
    return static_cast<std::uint32_t>(address) >> kSectorBits;
  }

  // The sectors with some byte in [address, address + size) are touched.
  void Touch(std::uint64_t address, std::uint64_t size, SectorTouch touch, std::uint32_t user) {
    if (size == 0) return;
    const std::uint64_t first = address >> kSectorBits;
    std::uint64_t last = (address + size - 1) >> kSectorBits;
    if (last - first >= kSectors) last = first + kSectors - 1;  // those are all
    for (std::uint64_t sector = first; sector <= last; ++sector) {
      std::uint8_t& byte = uses[sector % kSectors];
      std::uint8_t before = __atomic_load_n(&byte, __ATOMIC_RELAXED);
      for (;;) {
        const std::uint8_t after = SectorUseAfter(before, touch, user);
        if (after == before) break;
        if (before == kSectorOfNobody) {
          __atomic_store_n(&in_use[sector % kSectors / kSectorsInGroup], std::uint8_t{1},
                           __ATOMIC_RELAXED);
        }
        if (__atomic_compare_exchange_n(&byte, &before, after, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
          break;
        }
      }
    }
  }
};

}  // namespace trapline::agent
