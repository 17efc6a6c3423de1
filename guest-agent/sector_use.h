// Memory of which hot code in the code cache need not tell.
//
// A sector (512 bytes) is settled when for some time one thread alone has used it, or all that used
// it have only read it. What hot code does there, as the sector has been used, is not told, just as
// it is not of native code on pages that are its thread's own or read-only.
//
// Whoever uses the sector otherwise is checked, and divides it: from then on each subsector of 64
// bytes settles by itself, beginning with what the sector was if that had settled. A sector is
// whole again when all that is used of it has settled in one way, or nothing has for some time. The
// subsectors of a whole one are as it is.
//
//     nobody --access--> one thread --read by another--> readers --write--> one thread
//                                   --write by another--> that thread
//     any of these --used otherwise, twice in a window of time--> shared
//     shared --some windows later--> nobody
//     any --atomic access--> atomic
//
// What has atomic operations never settles, so that nobody misses what is released there.
//
// Kept by the agent (repeats.cpp, fast_repeats.S) and the monitor, and asked by the code cache's
// checks: of sectors where several accesses are asked for at once, else of subsectors. A byte
// stands for all whose addresses differ by multiples of 4 GiB. Freestanding.
#pragma once

#include <cstdint>

#include "guest-agent/layout.h"

namespace trapline::agent {

inline constexpr unsigned kSectorBits = TRAPLINE_SECTOR_BITS;
inline constexpr std::uint64_t kSectorSize = 1u << kSectorBits;
inline constexpr std::uint32_t kSectors = 1u << (32 - kSectorBits);  // that can be told apart
inline constexpr std::uint32_t kSectorsInGroup = 4096;
inline constexpr unsigned kSubsectorBits = TRAPLINE_SUBSECTOR_BITS;
inline constexpr std::uint64_t kSubsectorSize = 1u << kSubsectorBits;
inline constexpr unsigned kSubsectors = kSectorSize / kSubsectorSize;  // of a sector
static_assert(kSubsectors == sizeof(std::uint64_t));  // they are handled as one word

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
static_assert(kSettled == TRAPLINE_SECTOR_SETTLED);
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

// A sector that is shared or has atomic operations is divided.
constexpr bool IsDivided(std::uint8_t byte) {
  const std::uint8_t use = byte & kSectorUseMask;
  return use == kSectorShared || use == kSectorAtomic;
}

// SectorUseAfter is of subsectors; a sector's byte after that.
constexpr std::uint8_t WholeUseAfter(std::uint8_t before, SectorTouch touch, std::uint32_t user) {
  const std::uint8_t after = SectorUseAfter(before, touch, user);
  const bool fresh = (before & kSectorUseMask) == kSectorOfNobody;
  return after == before || fresh || after == kSectorAtomic ? after : std::uint8_t{kSectorShared};
}

// The eight bytes of a sector's subsectors.
using SubsectorWord [[gnu::may_alias]] = std::uint64_t;
inline constexpr std::uint64_t kEachSubsector = 0x0101'0101'0101'0101;

// 0x80 in each byte that has this use. The uppermost bit of no byte is set.
constexpr std::uint64_t SubsectorsOfUse(std::uint64_t word, std::uint8_t use) {
  const std::uint64_t differences = (word & kSectorUseMask * kEachSubsector) ^ use * kEachSubsector;
  return ~(differences + 0x7f * kEachSubsector) & 0x80 * kEachSubsector;
}
// 0x80 in each byte that IsSettled.
constexpr std::uint64_t SettledSubsectors(std::uint64_t word) {
  return (word & kSettled * kEachSubsector) << 1 & ~SubsectorsOfUse(word, kSectorShared);
}
// OlderSectorUse of each.
constexpr std::uint64_t OlderSubsectorUses(std::uint64_t word) {
  const std::uint64_t shared = SubsectorsOfUse(word, kSectorShared);
  const std::uint64_t fixed = SubsectorsOfUse(word, kSectorOfNobody) |
                              SubsectorsOfUse(word, kSectorAtomic) |
                              ((word & kSettled * kEachSubsector) << 1 & ~shared);
  // The uppermost bit is set by those that have been shared for long enough.
  const std::uint64_t older = word + ((~fixed & 0x80 * kEachSubsector) >> 2);
  const std::uint64_t over = older >> 7 & kEachSubsector;
  return older & ~(over * 0xff);
}
static_assert(kSectorAge == 0x80 >> 2 && kSettled == 0x80 >> 1 && kSectorStates == 0x80);

// At TRAPLINE_SECTOR_USE.
struct SectorMemory {
  std::uint8_t uses[kSectors];  // by IndexOf; never less strict than the subsectors'
  // Whether some sector of the group may be used, or may grow older; kInUse, kAges.
  std::uint8_t groups[kSectors / kSectorsInGroup];
  alignas(4 << 20) std::uint8_t subsectors[kSectors * kSubsectors];  // by SubsectorOf

  static constexpr std::uint8_t kInUse = 1, kAges = 2;

  static constexpr std::uint32_t IndexOf(std::uint64_t address) {
    return static_cast<std::uint32_t>(address) >> kSectorBits;
  }
  static constexpr std::uint32_t SubsectorOf(std::uint64_t address) {
    return static_cast<std::uint32_t>(address) >> kSubsectorBits;
  }
  // Of the sector with this index.
  SubsectorWord& SubsectorsOf(std::uint32_t sector) {
    return *reinterpret_cast<SubsectorWord*>(&subsectors[sector * kSubsectors]);
  }

  // What has some byte in [address, address + size) is touched.
  void Touch(std::uint64_t address, std::uint64_t size, SectorTouch touch, std::uint32_t user) {
    if (size == 0) return;
    const std::uint64_t first = address >> kSectorBits;
    std::uint64_t last = (address + size - 1) >> kSectorBits;
    if (last - first >= kSectors) last = first + kSectors - 1;  // those are all
    for (std::uint64_t sector = first; sector <= last; ++sector) {
      const auto index = static_cast<std::uint32_t>(sector % kSectors);
      if (!IsDividedBy(index, touch, user)) continue;
      const std::uint64_t start = sector << kSectorBits;
      const std::uint64_t from = address > start ? address : start;
      const std::uint64_t to = sector < last ? start + kSectorSize : address + size;
      for (std::uint64_t at = from / kSubsectorSize; at <= (to - 1) / kSubsectorSize; ++at)
        TouchSubsector(static_cast<std::uint32_t>(at % sizeof subsectors), touch, user);
    }
  }

 private:
  // After a change: whoever lets time pass takes this back first, and then looks at the bytes.
  void MayAge(std::uint32_t sector) {
    std::uint8_t& group = groups[sector / kSectorsInGroup];
    if (__atomic_load_n(&group, __ATOMIC_SEQ_CST) != (kInUse | kAges))
      __atomic_store_n(&group, std::uint8_t{kInUse | kAges}, __ATOMIC_SEQ_CST);
  }

  // Whether the sector is divided once it is touched. A whole one has been touched then.
  bool IsDividedBy(std::uint32_t sector, SectorTouch touch, std::uint32_t user) {
    std::uint8_t& byte = uses[sector];
    SubsectorWord& word = SubsectorsOf(sector);
    std::uint8_t before = __atomic_load_n(&byte, __ATOMIC_ACQUIRE);
    for (;;) {
      const std::uint8_t after = WholeUseAfter(before, touch, user);
      if (after == before) return IsDivided(before);
      // The sector first, which must not be less strict. Its subsectors may be another thread's
      // by then: that holds.
      if (!__atomic_compare_exchange_n(&byte, &before, after, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_ACQUIRE)) {
        continue;
      }
      if (!IsSettled(before) && !IsDivided(before)) {
        std::uint64_t each = before * kEachSubsector;
        __atomic_compare_exchange_n(&word, &each, IsDivided(after) ? 0 : after * kEachSubsector,
                                    false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
      }
      MayAge(sector);
      return IsDivided(after);
    }
  }

  void TouchSubsector(std::uint32_t subsector, SectorTouch touch, std::uint32_t user) {
    std::uint8_t& byte = subsectors[subsector];
    std::uint8_t before = __atomic_load_n(&byte, __ATOMIC_RELAXED);
    for (;;) {
      const std::uint8_t after = SectorUseAfter(before, touch, user);
      if (after == before) return;
      if (__atomic_compare_exchange_n(&byte, &before, after, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_RELAXED)) {
        MayAge(subsector / kSubsectors);
        return;
      }
    }
  }
};

}  // namespace trapline::agent
