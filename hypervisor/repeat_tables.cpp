#include "hypervisor/repeat_tables.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "translator/access_site.h"

namespace trapline {
namespace {

using agent::IsInPeace;
using agent::RepeatLine;
using agent::Repeats;

// RepeatMemory::used of the line of a table and its neighbours.
bool IsUsed(unsigned slot, std::uint32_t line) {
  return (__atomic_load_n(&agent::UsedWord(slot, line), __ATOMIC_SEQ_CST) & agent::UsedBit(line)) !=
         0;
}

bool IsTableUsed(unsigned slot) {
  const std::uint32_t last = agent::LineMaskOf(slot) / agent::kLinesInPage / 64;
  const std::uint64_t* const used = Repeats().used[slot];
  return std::any_of(used, used + last + 1, [](const std::uint64_t& word) {
    return __atomic_load_n(&word, __ATOMIC_SEQ_CST) != 0;
  });
}

// Something was repeated there that has not been told.
bool HasMoments(const RepeatLine& line) {
  std::uint32_t all = 0;
  for (const auto& moments : line.moments) {
    for (const std::uint32_t& moment : moments) all |= __atomic_load_n(&moment, __ATOMIC_ACQUIRE);
  }
  return all != 0;
}

// Looks at the page of a line that is said to be used.
void ReviewPage(unsigned slot, std::uint32_t line) {
  __atomic_fetch_and(&agent::UsedWord(slot, line), ~agent::UsedBit(line), __ATOMIC_SEQ_CST);
  const RepeatLine* const page =
      agent::TableOf(slot) + line / agent::kLinesInPage * agent::kLinesInPage;
  const bool any = std::any_of(page, page + agent::kLinesInPage, [](const RepeatLine& each) {
    return agent::NumberOf(each) != 0 && (IsInPeace(each) || HasMoments(each));
  });
  if (any) __atomic_fetch_or(&agent::UsedWord(slot, line), agent::UsedBit(line), __ATOMIC_SEQ_CST);
}

// Calls visit(RepeatLine&) for all lines of a table but such as are of no use any more.
template <class Visit>
void ForEachLine(unsigned slot, Visit&& visit) {
  RepeatLine* const table = agent::TableOf(slot);
  for (std::uint32_t first = 0; first <= agent::LineMaskOf(slot); first += agent::kLinesInPage) {
    if (!IsUsed(slot, first)) continue;
    for (std::uint32_t i = 0; i < agent::kLinesInPage; ++i) visit(table[first + i]);
  }
}

// Blocks whose lines are in one page, and those of their words in kRepeatPieces others.
constexpr std::uint64_t kGroup = agent::kLinesInPage;
static_assert(agent::IndexOf(kGroup) / kGroup == agent::IndexOf(2 * kGroup - 1) / kGroup);

// Calls visit(line) -> bool for a line of each page that has lines of a group and is used, until
// one says true. Whether one did.
template <class Visit>
bool AnyUsedPageOf(unsigned slot, std::uint64_t group, Visit&& visit) {
  const auto first = static_cast<std::uint32_t>(agent::IndexOf(group * kGroup) / kGroup * kGroup);
  const std::uint32_t mask = agent::LineMaskOf(slot);
  const auto is = [&](std::uint32_t line) { return IsUsed(slot, line) && visit(line); };
  if (is(agent::LineOf(first, mask))) return true;
  for (std::uint32_t i = 0; i < kGroup; i += kGroup / agent::kRepeatPieces) {
    if (is(agent::BytewiseLineOf(first + i, 0, mask))) return true;
  }
  return false;
}

// Whether any page that has lines of a group is used.
bool IsGroupUsed(unsigned slot, std::uint64_t group) {
  return AnyUsedPageOf(slot, group, [](std::uint32_t) { return true; });
}

// Calls visit(RepeatLine&) for the lines of blocks in [start, end), and some others.
template <class Visit>
void ForEachLineNear(unsigned slot, std::uint64_t start, std::uint64_t end, Visit&& visit) {
  if (!IsTableUsed(slot)) return;
  const std::uint64_t first = start / agent::kRepeatBlock;
  const std::uint64_t last = (end - 1) / agent::kRepeatBlock;
  if (last - first > agent::LineMaskOf(slot)) {  // more blocks than lines
    ForEachLine(slot, visit);
    return;
  }
  for (std::uint64_t group = first / kGroup; group <= last / kGroup; ++group) {
    if (!IsGroupUsed(slot, group)) continue;
    const std::uint64_t end_of_group = std::min(last, (group + 1) * kGroup - 1);
    for (std::uint64_t block = std::max(first, group * kGroup); block <= end_of_group; ++block)
      agent::ForEachLineOf(slot, agent::IndexOf(block), visit);
  }
}

// Reviews pages with lines of blocks in [start, end), others with another `turn` if they are many.
void ReviewNear(unsigned slot, std::uint64_t start, std::uint64_t end, unsigned turn) {
  constexpr std::uint64_t kMost = 8;
  const std::uint64_t groups = (end - start) / agent::kRepeatBlock / kGroup;
  const std::uint64_t first =
      start / agent::kRepeatBlock / kGroup + turn % (groups / kMost + 1) * kMost;
  const std::uint64_t last = std::min((end - 1) / agent::kRepeatBlock / kGroup, first + kMost - 1);
  for (std::uint64_t group = first; group <= last; ++group) {
    AnyUsedPageOf(slot, group, [slot](std::uint32_t line) {
      ReviewPage(slot, line);
      return false;
    });
  }
}

// Whether the line's block has bytes in [start, end).
bool IsIn(const RepeatLine& line, std::uint64_t start, std::uint64_t end) {
  const std::uint64_t block = agent::AddressOf(agent::NumberOf(line)) / agent::kRepeatBlock;
  return block >= start / agent::kRepeatBlock && block <= (end - 1) / agent::kRepeatBlock;
}

}  // namespace

RepeatTables::RepeatTables(std::function<std::uint64_t()> next_event, Tell tell)
    : next_event_(std::move(next_event)), tell_(std::move(tell)) {}

void RepeatTables::Start(std::uint64_t after, std::uint32_t lines) {
  constexpr std::uint64_t kFirstPause = 1 << 24;
  Repeats().enabled = 0;
  started_ = was_started_ = true;
  first_lines_ = lines;
  weigh_at_ = first_trial_ = after;
  pause_ = kFirstPause;
  // The guest has the tables on large pages, and so has the processor if the host does, too. Asked
  // for later, when they have been used, it makes no difference (on kvm_pvm).
  constexpr std::size_t kHeader = offsetof(agent::RepeatMemory, use);
  constexpr std::size_t kEnd = offsetof(agent::RepeatMemory, sectors);
  madvise(Repeats().use, kEnd - kHeader, MADV_HUGEPAGE);  // a wish
  // Sites of writes are noted for few lines. bench/programs, peak memory, medians of three by turns
  // with and without large pages for them: canneal 102 and 94 MiB with two threads, 136 and 128
  // with four, barnes 81 and 75, 110 and 98, streamcluster 68 and 59 with four; the same time.
  agent::RepeatTableMemory& tables = agent::TableMemory();
  madvise(&tables, offsetof(agent::RepeatTableMemory, write_sites), MADV_HUGEPAGE);
  madvise(&tables.write_sites, sizeof tables.write_sites, MADV_NOHUGEPAGE);
}

void RepeatTables::End(std::uint64_t before) {
  if (!started_) return;
  Repeats().enabled = 0;
  TellAll(before);
  started_ = false;
}

std::optional<unsigned> RepeatTables::Add(agent::ThreadPage& page, ThreadId thread) {
  page.repeat_table = page.repeat_write_sites = page.repeats = 0;
  // What others have noted while there were repeats may be found later (biased_locks.h).
  page.repeat_user = was_started_ ? agent::kUsedByOthers : agent::kUsedByNobody;
  if (!started_) return std::nullopt;
  const auto free = std::ranges::find(pages_, nullptr);
  if (free == pages_.end()) return std::nullopt;
  const auto slot = static_cast<unsigned>(free - pages_.begin());
  *free = &page;
  Repeats().threads[slot] = thread + 1;
  page.repeat_user = slot + 1;
  SetLines(slot, first_lines_);
  page.repeats_missed = 0;
  growth_[slot] = {0, page.queue_head};
  page.repeat_table = reinterpret_cast<std::uint64_t>(agent::TableOf(slot));
  page.repeat_write_sites = reinterpret_cast<std::uint64_t>(agent::TableMemory().write_sites[slot]);
  return slot;
}

void RepeatTables::Remove(unsigned slot) {
  if (started_) TellTable(slot, ~std::uint64_t{0});
  ClearTable(slot);
  if (agent::LineMaskOf(slot) >= first_lines_) DiscardTable(slot);
  Repeats().threads[slot] = 0;
  ended_ += std::exchange(pages_[slot], nullptr)->repeats;
}

void RepeatTables::RemoveAll() {
  if (!started_) return;
  Discard();
  pages_ = {};
  std::ranges::fill(Repeats().threads, 0);
  Repeats().enabled = 0;
  weigh_at_ = first_trial_;
  counted_ = ended_ = discard_after_ = 0;
}

void RepeatTables::Grant(unsigned slot, const AccessSite& site, std::uint64_t address) {
  site.plain = true;
  if (Repeats().enabled == 0 || !agent::MayRepeat(address, site.size)) return;
  agent::ForEachPart(address, site.size, agent::LineMaskOf(slot), [&](const agent::LinePart& part) {
    RepeatLine& line = agent::TableOf(slot)[part.line];
    const std::uint64_t granted = part.granted();
    std::uint64_t entry = __atomic_load_n(&line.entry, __ATOMIC_ACQUIRE);
    while ((entry & agent::kLineNumber) == part.number && (entry & granted) != granted &&
           !__atomic_compare_exchange_n(&line.entry, &entry, entry | granted, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
    return true;
  });
}

void RepeatTables::Untell(unsigned slot, const AccessSite& site, std::uint64_t address) {
  if (!agent::MayRepeat(address, site.size)) return;
  agent::ForEachPart(address, site.size, agent::LineMaskOf(slot), [&](const agent::LinePart& part) {
    RepeatLine& line = agent::TableOf(slot)[part.line];
    if (agent::NumberOf(line) == part.number)
      __atomic_fetch_and(&line.entry, ~part.told(site.write), __ATOMIC_ACQ_REL);
    return true;
  });
}

void RepeatTables::Touch(std::uint32_t user, std::uint64_t address, std::uint64_t size,
                         agent::Touch touch, const Tell& tell) {
  if (!started_ || Repeats().enabled == 0) return;
  agent::ForEachBlock(address, size,
                      [&](std::uint32_t index) { TouchBlock(index, touch, user, tell); });
}

void RepeatTables::TouchReadAtomically(std::uint64_t start, std::uint64_t end, const Tell& tell) {
  if (!started_ || Repeats().enabled == 0) return;
  agent::ForEachBlock(start, end - start, [&](std::uint32_t index) {
    if (agent::UseOf(index) == agent::kReadAtomically)
      TouchBlock(index, agent::Touch::kAtomicWrite, agent::kUsedByOthers, tell);
  });
}

void RepeatTables::TouchBlock(std::uint32_t index, agent::Touch touch, std::uint32_t user,
                              const Tell& tell) {
  agent::TouchBlock(index, touch, user,
                    [&](unsigned slot, const agent::Repeat& repeat) { tell(Whole(slot, repeat)); });
}

void RepeatTables::Forget(std::uint64_t start, std::uint64_t end) {
  if (!started_ || start >= end) return;
  for (unsigned slot = 0; slot < agent::kRepeatThreads; ++slot) {
    if (pages_[slot] == nullptr) continue;
    ForEachLineNear(slot, start, end, [&](RepeatLine& line) {
      if (!IsIn(line, start, end)) return;
      agent::ForgetMoments(line);
      __atomic_store_n(&line.use, agent::kUsedByNobody, __ATOMIC_RELEASE);
    });
  }
}

void RepeatTables::OnBlock(ThreadId thread, bool freed, std::uint64_t start, std::uint64_t end,
                           std::uint64_t number) {
  if (!started_ || start >= end) return;
  const std::uint64_t now = next_event_();
  const auto earlier = [&](std::uint32_t moment) {
    return agent::WholeMoment(now, moment) <= number;
  };
  // What is given back and taken again and again would have the same lines looked at each time.
  constexpr unsigned kOneIn = 17;  // prime: programs go through several blocks by turns
  const bool reviews = ++blocks_ % kOneIn == 0;
  for (unsigned slot = 0; slot < agent::kRepeatThreads; ++slot) {
    if (pages_[slot] == nullptr) continue;
    const bool own = Repeats().threads[slot] == thread + 1;
    const auto visit = [&](unsigned, const agent::Repeat& repeat) {
      const RepeatedAccess access = Whole(slot, repeat);
      if (freed && !own) {
        tell_(access);
        return;
      }
      const auto tell = [&](std::uint64_t from, std::uint64_t to) {
        RepeatedAccess part = access;
        part.address = from;
        part.size = to - from;
        if (from < to) tell_(part);
      };
      const std::uint64_t access_end = access.address + access.size;
      tell(access.address, std::min(access_end, start));
      tell(std::max(access.address, end), access_end);
    };
    // The agent has ended the peace of all blocks that share a word with those in the range.
    ForEachLineNear(slot, start, end, [&](RepeatLine& line) {
      if (HasMoments(line) && (IsIn(line, start, end) || !IsInPeace(line)))
        agent::TakeRepeats(slot, line, visit, earlier);
    });
    if (reviews) ReviewNear(slot, start, end, blocks_ / kOneIn);
  }
}

void RepeatTables::TellTable(unsigned slot, std::uint64_t before) {
  const std::uint64_t now = next_event_();
  const auto earlier = [&](std::uint32_t moment) {
    return agent::WholeMoment(now, moment) < before;
  };
  ForEachLine(slot, [&](RepeatLine& line) {
    // Else it has been taken by who ended the peace.
    if (!IsInPeace(line)) return;
    agent::TakeRepeats(
        slot, line, [&](unsigned, const agent::Repeat& repeat) { tell_(Whole(slot, repeat)); },
        earlier);
  });
}

void RepeatTables::TellAll(std::uint64_t before) {
  if (!started_) return;
  for (unsigned slot = 0; slot < agent::kRepeatThreads; ++slot) {
    if (pages_[slot] != nullptr) TellTable(slot, before);
  }
}

void RepeatTables::SetLines(unsigned slot, std::uint32_t lines) {
  pages_[slot]->repeat_line_mask = lines - 1;
  __atomic_store_n(&Repeats().line_mask[slot], lines - 1, __ATOMIC_RELEASE);
}

bool RepeatTables::IsFull(unsigned slot) {
  // One in so many of what was told, and enough of that to be asked. Peak memory and processor
  // time of bench/programs, medians of three by turns, with 2^18 lines from the start and so: lu 96
  // and 65 MiB, streamcluster 101 and 75, water-nsquared 50 and 42, radiosity 458 and 428, barnes
  // and fluidanimate as before, canneal 196 and 182; the same time. With 2^15 for good canneal took
  // more than 60 s instead of 11. With enough = 2^16 a short while of new memory was as good as a
  // table that is too small for long: barnes had 118 MiB instead of 99 with four threads, 81
  // instead of 74 with two, and radiosity took 35 s instead of 32.
  constexpr std::uint64_t kShare = 16, kEnough = 1 << 18;
  if (!started_ || Repeats().enabled == 0 || pages_[slot] == nullptr ||
      agent::LineMaskOf(slot) == agent::kRepeatLines - 1)
    return false;
  const agent::ThreadPage& page = *pages_[slot];
  Growth& growth = growth_[slot];
  const std::uint64_t told = page.queue_head - growth.queued;
  if (told < kEnough) return false;
  const std::uint64_t missed = (page.repeats_missed - growth.missed) * agent::kDisplacedSample;
  growth = {page.repeats_missed, page.queue_head};
  return missed * kShare >= told;
}

// The lines of the smaller table that are good have another place in the larger one. They are given
// up rather than moved, since who takes what was noted in one may look at it at any time.
void RepeatTables::Grow(unsigned slot, std::uint64_t before) {
  const std::uint32_t lines = agent::LineMaskOf(slot) + 1;
  if (!started_ || lines == agent::kRepeatLines) return;
  TellTable(slot, before);
  // Where the peace has ended somebody may be taking what was noted.
  const auto for_each_good_line = [slot](auto&& visit) {
    ForEachLine(slot, [&](RepeatLine& line) {
      if (agent::NumberOf(line) != 0 && IsInPeace(line)) visit(line);
    });
  };
  bool later = false;
  for_each_good_line([&](const RepeatLine& line) { later = later || HasMoments(line); });
  if (later) return;
  for_each_good_line([](RepeatLine& line) { __atomic_store_n(&line.entry, 0, __ATOMIC_RELEASE); });
  SetLines(slot, 2 * lines);
}

void RepeatTables::Weigh(std::uint64_t checks, std::uint64_t before) {
  constexpr std::uint64_t kTrial = 1 << 20, kShortestPause = 1 << 24, kLongestPause = 1 << 28;
  // Long enough for who was about to note or to take a repeat when the pause began.
  constexpr unsigned kDrains = 64;
  if (!started_) return;
  if (discard_after_ != 0 && ++drains_ >= kDrains && before > discard_after_) {
    TellAll(before);
    Discard();
  }
  if (checks < weigh_at_) return;
  auto& enabled = Repeats().enabled;
  const std::uint64_t repeats = count();
  const bool pays = repeats - counted_ >= kTrial / 2;
  counted_ = repeats;
  if (enabled == 0) {
    Clear();  // what was noted after all
    discard_after_ = 0;
    enabled = 1;
    weigh_at_ = checks + kTrial;
  } else if (pays) {
    pause_ = kShortestPause;
    weigh_at_ = checks + kTrial;
  } else {
    enabled = 0;
    TellAll(before);
    discard_after_ = next_event_();
    drains_ = 0;
    weigh_at_ = checks + pause_;
    pause_ = std::min(2 * pause_, kLongestPause);
  }
}

void RepeatTables::ClearTable(unsigned slot) {
  ForEachLine(slot, [](RepeatLine& line) { line = {}; });
  std::ranges::fill(Repeats().used[slot], 0);
}

void RepeatTables::DiscardTable(unsigned slot) {
  agent::RepeatTableMemory& memory = agent::TableMemory();
  madvise(&memory.tables[slot], sizeof memory.tables[slot], MADV_DONTNEED);
  madvise(&memory.write_sites[slot], sizeof memory.write_sites[slot], MADV_DONTNEED);
}

// They may be empty for long, and take up to 20 MiB for each thread.
void RepeatTables::Discard() {
  // In this order no line is left that is good and not known as used.
  for (auto& used : Repeats().used) std::ranges::fill(used, 0);
  for (unsigned slot = 0; slot < agent::kRepeatThreads; ++slot) DiscardTable(slot);
  discard_after_ = 0;
}

void RepeatTables::Clear() {
  if (!started_) return;
  for (unsigned slot = 0; slot < agent::kRepeatThreads; ++slot) {
    if (pages_[slot] != nullptr) ClearTable(slot);
  }
}

std::uint64_t RepeatTables::count() const {
  std::uint64_t count = ended_;
  for (const agent::ThreadPage* const page : pages_) count += page != nullptr ? page->repeats : 0;
  return count;
}

RepeatedAccess RepeatTables::Whole(unsigned slot, const agent::Repeat& repeat) const {
  const auto& site = *reinterpret_cast<const AccessSite*>(std::uint64_t{repeat.site});
  return {static_cast<ThreadId>(Repeats().threads[slot] - 1),
          repeat.write,
          site.locked,
          repeat.address,
          repeat.size,
          agent::WholeMoment(next_event_(), repeat.moment),
          site.rip};
}

}  // namespace trapline
