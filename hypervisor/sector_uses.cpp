#include "hypervisor/sector_uses.h"

#include <algorithm>
#include <cstring>

#include "guest-agent/repeats.h"
#include "hypervisor/clock.h"

namespace trapline {
namespace {

using agent::kSectorOfNobody;
using agent::kSectorUseMask;
using agent::kSettled;
using agent::SectorMemory;

constexpr std::uint64_t kWindows = kSettled / agent::kSectorAge;

SectorMemory& Memory() { return agent::Repeats().sectors; }
std::uint8_t& UseOf(std::uint64_t address) { return Memory().uses[SectorMemory::IndexOf(address)]; }

// The guest may change the byte at the same time; then that holds.
void Replace(std::uint8_t& byte, std::uint8_t before, std::uint8_t after) {
  __atomic_compare_exchange_n(&byte, &before, after, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

}  // namespace

void SectorUses::Start(std::uint32_t settle_after) {
  window_ = std::uint64_t{settle_after} * 1'000'000 / kWindows;
  started_ = true;
  agent::Repeats().keeps_sector_use = 1;
}

void SectorUses::End() {
  if (!started_) return;
  for (agent::ThreadPage* const page : threads_) std::ranges::fill(page->need_not_tell, 0);
  agent::Repeats().keeps_sector_use = 0;
  RemoveAll();
  started_ = false;
}

void SectorUses::Add(agent::ThreadPage& page, std::uint32_t user) {
  // After a fork it has those of another number.
  std::ranges::fill(page.need_not_tell, 0);
  if (!started_ || user > agent::kSectorUsers) return;
  page.need_not_tell[kSettled | user] = agent::kLeaveOutReads | agent::kLeaveOutWrites;
  page.need_not_tell[kSettled | agent::kSectorOfReaders] = agent::kLeaveOutReads;
  threads_.push_back(&page);
}

void SectorUses::Remove(agent::ThreadPage& page, std::uint32_t user) {
  if (!started_) return;
  std::ranges::fill(page.need_not_tell, 0);
  std::erase(threads_, &page);
  // The next thread may get the number.
  ForEachUsed([user](std::uint8_t use) { return (use & kSectorUseMask) == user; },
              [](std::uint8_t& byte, std::uint8_t before, std::uint32_t) {
                Replace(byte, before, kSectorOfNobody);
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
  const std::uint64_t first = (start + agent::kSectorSize - 1) / agent::kSectorSize;
  const std::uint64_t last = end / agent::kSectorSize;
  for (std::uint64_t sector = first; sector < std::min(last, first + agent::kSectors); ++sector) {
    std::uint8_t& byte = Memory().uses[sector % agent::kSectors];
    const std::uint8_t before = __atomic_load_n(&byte, __ATOMIC_RELAXED);
    // Other memory, 4 GiB away, has the byte, too, and may have the atomic operations.
    if (before != agent::kSectorAtomic) Replace(byte, before, kSectorOfNobody);
  }
}

void SectorUses::Move(std::uint64_t from, std::uint64_t to, std::uint64_t length) {
  if (!started_) return;
  Forget(to, to + length);
  length = std::min(length, agent::kSectors * agent::kSectorSize);  // those are all
  for (std::uint64_t done = 0; done < length; done += agent::kSectorSize) {
    if (UseOf(from + done) == agent::kSectorAtomic)
      Touch(0, to + done, 1, agent::SectorTouch::kAtomic);
  }
  Forget(from, from + length);
}

void SectorUses::Clear() {
  if (!started_) return;
  ForEachUsed([](std::uint8_t) { return true; },
              [](std::uint8_t& byte, std::uint8_t, std::uint32_t) {
                __atomic_store_n(&byte, kSectorOfNobody, __ATOMIC_SEQ_CST);
              });
  left_out_ = {};
}

void SectorUses::Age() {
  if (!started_) return;
  const std::uint64_t now = Nanoseconds(CLOCK_MONOTONIC);
  if (now - aged_at_ < window_) return;
  aged_at_ = now;
  const auto ages = [](std::uint8_t use) { return agent::OlderSectorUse(use) != use; };
  ForEachUsed(ages, [this](std::uint8_t& byte, std::uint8_t before, std::uint32_t index) {
    const std::uint8_t after = agent::OlderSectorUse(before);
    if (agent::IsSettled(after)) {
      auto& group = left_out_[index / agent::kSectorsInGroup];
      if (group == nullptr) group = std::make_unique<Group>();
      std::uint8_t& who = (*group)[index % agent::kSectorsInGroup];
      const std::uint8_t use = before & kSectorUseMask;
      who = who == kSectorOfNobody || who == use ? use : std::uint8_t{agent::kSectorOfReaders};
      ++(use == agent::kSectorOfReaders ? settled_.read : settled_.own);
    }
    Replace(byte, before, after);
  });
}

std::uint32_t SectorUses::LeftOutBy(std::uint64_t address) const {
  const std::uint32_t index = SectorMemory::IndexOf(address);
  const Group* const group = left_out_[index / agent::kSectorsInGroup].get();
  if (group == nullptr) return kSectorOfNobody;
  return (*group)[index % agent::kSectorsInGroup];
}

template <class Wanted, class Change>
void SectorUses::ForEachUsed(Wanted&& wanted, Change&& change) {
  SectorMemory& memory = Memory();
  for (std::uint32_t first = 0; first < agent::kSectors; first += agent::kSectorsInGroup) {
    if (memory.in_use[first / agent::kSectorsInGroup] == 0) continue;
    for (std::uint32_t i = first; i < first + agent::kSectorsInGroup; i += sizeof(std::uint64_t)) {
      std::uint64_t some = 0;
      std::memcpy(&some, memory.uses + i, sizeof some);
      // Mostly all alike: of nobody, or settled.
      constexpr std::uint64_t kEachByte = 0x0101'0101'0101'0101;
      const auto first_use = static_cast<std::uint8_t>(some);
      if (some == 0 || (some == first_use * kEachByte && !wanted(first_use))) continue;
      for (std::uint32_t k = i; k < i + sizeof some; ++k) {
        const std::uint8_t byte = __atomic_load_n(&memory.uses[k], __ATOMIC_RELAXED);
        if (byte != kSectorOfNobody && wanted(byte)) change(memory.uses[k], byte, k);
      }
    }
  }
}

}  // namespace trapline
