#include "hypervisor/sector_uses.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "guest-agent/repeats.h"
#include "hypervisor/clock.h"
#include "shadow-pages/address.h"

namespace trapline {
namespace {

using agent::kSectorOfNobody;
using agent::kSectorUseMask;
using agent::kSettled;
using agent::SectorMemory;

constexpr std::uint64_t kWindows = kSettled / agent::kSectorAge;

SectorMemory& Memory() { return agent::Repeats().sectors; }

// What the guest changes at the same time holds.
std::uint8_t UseOf(std::uint32_t sector) {
  return __atomic_load_n(&Memory().uses[sector], __ATOMIC_SEQ_CST);
}
std::uint64_t SubsectorsOf(std::uint32_t sector) {
  return __atomic_load_n(&Memory().SubsectorsOf(sector), __ATOMIC_SEQ_CST);
}
bool ReplaceUse(std::uint32_t sector, std::uint8_t before, std::uint8_t after) {
  return __atomic_compare_exchange_n(&Memory().uses[sector], &before, after, false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}
bool ReplaceSubsectors(std::uint32_t sector, std::uint64_t before, std::uint64_t after) {
  return __atomic_compare_exchange_n(&Memory().SubsectorsOf(sector), &before, after, false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

constexpr std::uint64_t EachOf(std::uint8_t byte) { return byte * agent::kEachSubsector; }

// 0xff in each byte of the word that has this use.
std::uint64_t MaskOfUse(std::uint64_t word, std::uint8_t use) {
  return (agent::SubsectorsOfUse(word, use) >> 7) * 0xff;
}

// Nothing is known of the subsectors in `mask`, 0xff for each, but that they are atomic.
void ForgetSubsectors(std::uint32_t sector, std::uint64_t mask) {
  for (;;) {
    const std::uint64_t before = SubsectorsOf(sector);
    const std::uint64_t after = before & (~mask | MaskOfUse(before, agent::kSectorAtomic));
    if (after == before || ReplaceSubsectors(sector, before, after)) return;
  }
}

// A whole sector is of nobody from now on.
void ForgetWhole(std::uint32_t sector, std::uint8_t before) {
  if (ReplaceUse(sector, before, kSectorOfNobody)) ForgetSubsectors(sector, ~std::uint64_t{0});
}

// Whether the eight sectors from `first` on, whose bytes are `uses`, have settled in one way and
// are whole: time changes nothing about them.
bool HaveSettled(std::uint32_t first, std::uint64_t uses) {
  const auto byte = static_cast<std::uint8_t>(uses);
  if (uses != EachOf(byte) || !agent::IsSettled(byte) || agent::IsDivided(byte)) return false;
  std::uint64_t differences = 0;
  for (std::uint32_t sector = first; sector < first + sizeof uses; ++sector)
    differences |= SubsectorsOf(sector) ^ uses;
  return differences == 0;
}

// What all subsectors that are in use have settled as, if that is the same.
std::optional<std::uint8_t> CommonUse(std::uint64_t word) {
  const std::uint64_t used = ~MaskOfUse(word, kSectorOfNobody);
  if (used == 0) return std::nullopt;
  const auto first = static_cast<std::uint8_t>((word >> __builtin_ctzll(used) / 8 * 8) &
                                               (agent::kSectorStates - 1));
  if (word != (EachOf(first) & used) || !agent::IsSettled(first)) return std::nullopt;
  return first;
}

}  // namespace

void SectorUses::Start(std::uint32_t settle_after) {
  window_ = std::uint64_t{settle_after} * 1'000'000 / kWindows;
  started_ = true;
  // Little of it is used, here and there.
  madvise(Memory().subsectors, sizeof Memory().subsectors, MADV_NOHUGEPAGE);  // a wish
  agent::Repeats().keeps_sector_use = 1;
}

void SectorUses::End() {
  if (!started_.exchange(false)) return;
  for (agent::ThreadPage* const page : threads_) std::ranges::fill(page->need_not_tell, 0);
  agent::Repeats().keeps_sector_use = 0;
  threads_.clear();
  ClearSectors();
}

void SectorUses::Add(agent::ThreadPage& page, std::uint32_t user) {
  // After a fork it has those of another number.
  std::ranges::fill(page.need_not_tell, 0);
  if (!started_ || user > agent::kSectorUsers) return;
  CountWrites(page, user, 0);
  threads_.push_back(&page);
}

void SectorUses::CountWrites(agent::ThreadPage& page, std::uint32_t user, std::int64_t most) const {
  if (!started_ || user > agent::kSectorUsers) return;
  const auto own =
      static_cast<std::uint8_t>(agent::kLeaveOutReads | (most != 0 ? 0 : agent::kLeaveOutWrites));
  page.counted_writes = most != 0 ? most : std::numeric_limits<std::int64_t>::max();
  page.need_not_tell[kSettled | user] = own;
  page.need_not_tell[kSettled | agent::kSectorOfReaders] = agent::kLeaveOutReads;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!started_) std::ranges::fill(page.need_not_tell, 0);  // it has ended meanwhile
}

void SectorUses::Remove(agent::ThreadPage& page, std::uint32_t user) {
  if (!started_) return;
  std::ranges::fill(page.need_not_tell, 0);
  std::erase(threads_, &page);
  // The next thread may get the number.
  ForEachUsed([user](std::uint32_t sector) {
    const std::uint8_t byte = UseOf(sector);
    if ((byte & kSectorUseMask) == user) return ForgetWhole(sector, byte);
    const auto use = static_cast<std::uint8_t>(user);
    ForgetSubsectors(sector, MaskOfUse(SubsectorsOf(sector), use));
  });
}

void SectorUses::RemoveAll() {
  threads_.clear();
  Clear();
}

void SectorUses::Touch(std::uint32_t user, std::uint64_t address, std::uint64_t size,
                       agent::SectorTouch touch) {
  if (started_) Memory().Touch(address, size, touch, user);
}

void SectorUses::Forget(std::uint64_t start, std::uint64_t end) {
  if (!started_ || start >= end) return;
  start = AlignUp(start, agent::kSubsectorSize);
  end = AlignDown(end, agent::kSubsectorSize);
  // Other memory, 4 GiB away, has the same bytes, and may have the atomic operations.
  end = std::min(end, start + agent::kSectors * agent::kSectorSize);
  for (std::uint64_t at = start; at < end;) {
    const std::uint64_t sector_end = AlignDown(at, agent::kSectorSize) + agent::kSectorSize;
    const std::uint64_t part_end = std::min(end, sector_end);
    const std::uint32_t sector = SectorMemory::IndexOf(at);
    const std::uint8_t byte = UseOf(sector);
    if (agent::IsDivided(byte)) {
      std::uint64_t mask = 0;
      for (std::uint64_t part = at; part < part_end; part += agent::kSubsectorSize)
        mask |= 0xffull << SectorMemory::SubsectorOf(part) % agent::kSubsectors * 8;
      ForgetSubsectors(sector, mask);
    } else if (byte != kSectorOfNobody && at + agent::kSectorSize == part_end) {
      ForgetWhole(sector, byte);
    }
    at = part_end;
  }
}

void SectorUses::Move(std::uint64_t from, std::uint64_t to, std::uint64_t length) {
  if (!started_) return;
  Forget(to, to + length);
  length = std::min(length, agent::kSectors * agent::kSectorSize);  // those are all
  for (std::uint64_t done = 0; done < length; done += agent::kSectorSize) {
    if (UseOf(SectorMemory::IndexOf(from + done)) == agent::kSectorAtomic)
      Touch(0, to + done, agent::kSectorSize, agent::SectorTouch::kAtomic);
  }
  Forget(from, from + length);
}

void SectorUses::Clear() {
  if (started_) ClearSectors();
}

void SectorUses::ClearSectors() {
  ForEachUsed([](std::uint32_t sector) {
    __atomic_store_n(&Memory().uses[sector], kSectorOfNobody, __ATOMIC_SEQ_CST);
    __atomic_store_n(&Memory().SubsectorsOf(sector), 0, __ATOMIC_SEQ_CST);
  });
  left_out_ = {};
  atomic_ = {};
}

void SectorUses::Age() {
  if (!started_) return;
  const std::uint64_t now = Nanoseconds(CLOCK_MONOTONIC);
  if (now - aged_at_ < window_) return;
  aged_at_ = now;
  for (std::uint32_t group = 0; group < std::size(Memory().groups); ++group) {
    std::uint8_t& state = Memory().groups[group];
    if ((__atomic_load_n(&state, __ATOMIC_SEQ_CST) & SectorMemory::kAges) == 0) continue;
    // Who changes anything from now on says so again.
    __atomic_store_n(&state, SectorMemory::kInUse, __ATOMIC_SEQ_CST);
    bool ages = false;
    // Of eight neighbours that have all settled alike, as most have, one look tells.
    ForEachUsed(group, HaveSettled, [&](std::uint32_t sector) { ages |= Age(sector); });
    if (ages) __atomic_fetch_or(&state, SectorMemory::kAges, __ATOMIC_SEQ_CST);
  }
}

bool SectorUses::Age(std::uint32_t sector) {
  const std::uint8_t byte = UseOf(sector);
  return agent::IsDivided(byte) ? AgeDivided(sector, byte) : AgeWhole(sector, byte);
}

bool SectorUses::AgeWhole(std::uint32_t sector, std::uint8_t byte) {
  const std::uint64_t word = SubsectorsOf(sector);
  if (word == 0) {  // just claimed
    ReplaceSubsectors(sector, word, EachOf(byte));
    return true;
  }
  if (word != EachOf(byte)) {  // made whole as somebody touched a part of it
    ReplaceUse(sector, byte, agent::kSectorShared);
    return true;
  }
  const std::uint8_t after = agent::OlderSectorUse(byte);
  if (after == byte) return false;
  if (agent::IsSettled(after)) NoteLeavesOut(sector, after);
  if (ReplaceSubsectors(sector, word, EachOf(after))) ReplaceUse(sector, byte, after);
  return true;
}

bool SectorUses::AgeDivided(std::uint32_t sector, std::uint8_t byte) {
  const std::uint64_t word = SubsectorsOf(sector);
  const std::uint64_t older = agent::OlderSubsectorUses(word);
  for (std::uint64_t settled = agent::SettledSubsectors(older) & ~agent::SettledSubsectors(word);
       settled != 0; settled &= settled - 1) {
    NoteLeavesOut(sector, static_cast<std::uint8_t>(older >> __builtin_ctzll(settled) / 8 * 8));
  }
  if (older != word && !ReplaceSubsectors(sector, word, older)) return true;
  if ((byte & kSectorUseMask) == agent::kSectorAtomic) return older != word;
  // Whole again? A subsector that is touched meanwhile divides it once more (AgeWhole). What
  // several have used until now is not yet nobody's.
  const std::uint8_t after = agent::OlderSectorUse(byte);
  const bool released = MaskOfUse(older, kSectorOfNobody) != MaskOfUse(word, kSectorOfNobody);
  if (const auto common = CommonUse(older); common && !released) {
    if (ReplaceSubsectors(sector, older, EachOf(*common)) && ReplaceUse(sector, byte, *common) &&
        SubsectorsOf(sector) != EachOf(*common)) {
      ReplaceUse(sector, *common, byte);
    }
    return true;
  }
  if (after != kSectorOfNobody) {
    if (after != byte) ReplaceUse(sector, byte, after);
    return true;
  }
  if (agent::SettledSubsectors(older) != 0) return older != word;
  if (ReplaceSubsectors(sector, older, 0)) ReplaceUse(sector, byte, kSectorOfNobody);
  return true;
}

void SectorUses::NoteLeavesOut(std::uint32_t sector, std::uint8_t byte) {
  std::uint8_t& who = ByteOf(left_out_, sector);
  const std::uint8_t use = byte & kSectorUseMask;
  who = who == kSectorOfNobody || who == use ? use : std::uint8_t{agent::kSectorOfReaders};
  ++(use == agent::kSectorOfReaders ? settled_.read : settled_.own);
}

std::uint8_t& SectorUses::ByteOf(Groups& groups, std::uint32_t sector) {
  auto& group = groups[sector / agent::kSectorsInGroup];
  if (group == nullptr) group = std::make_unique<Group>();
  return (*group)[sector % agent::kSectorsInGroup];
}

bool SectorUses::NoteAtomic(std::uint64_t address) {
  if (!started_) return true;
  const auto bit =
      static_cast<std::uint8_t>(1u << SectorMemory::SubsectorOf(address) % agent::kSubsectors);
  std::uint8_t& known = ByteOf(atomic_, SectorMemory::IndexOf(address));
  const bool is_new = (known & bit) == 0;
  known |= bit;
  return is_new;
}

std::uint32_t SectorUses::ReadsLeftOutBy(std::uint64_t address) const {
  if (!started_ || __atomic_load_n(&agent::Repeats().leaves_out_reads, __ATOMIC_SEQ_CST) == 0)
    return kSectorOfNobody;
  const std::uint32_t index = SectorMemory::IndexOf(address);
  const Group* const group = left_out_[index / agent::kSectorsInGroup].get();
  if (group == nullptr) return kSectorOfNobody;
  return (*group)[index % agent::kSectorsInGroup];
}

template <class Visit>
void SectorUses::ForEachUsed(Visit&& visit) {
  const auto skips_none = [](std::uint32_t, std::uint64_t) { return false; };
  for (std::uint32_t group = 0; group < std::size(Memory().groups); ++group) {
    if (Memory().groups[group] != 0) ForEachUsed(group, skips_none, visit);
  }
}

template <class Skip, class Visit>
void SectorUses::ForEachUsed(std::uint32_t group, Skip&& skip, Visit&& visit) {
  const std::uint32_t first = group * agent::kSectorsInGroup;
  for (std::uint32_t i = first; i < first + agent::kSectorsInGroup; i += sizeof(std::uint64_t)) {
    std::uint64_t some = 0;
    std::memcpy(&some, Memory().uses + i, sizeof some);
    if (some == 0 || skip(i, some)) continue;
    for (std::uint32_t sector = i; sector < i + sizeof some; ++sector) {
      if (UseOf(sector) != kSectorOfNobody) visit(sector);
    }
  }
}

}  // namespace trapline
