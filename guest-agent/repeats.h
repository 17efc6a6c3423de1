// Accesses that need not be told of again although the thread's epoch has ended.
//
// A thread's access is a repeat if it has made the same one before (same bytes and kind) and no
// other thread has done anything since that bears on it: for a write nothing at all, for a read no
// write. A repeat cannot race with anything that the detector knows, so only its time has to be
// kept: if another thread comes later, this is the access that it may race with. It is kept in the
// thread's own table, and told when the peace ends: by whoever ends it, who finds it there.
//
// A write must be known as plain, both the bytes and the instruction: the monitor grants them when
// it handles a write of theirs. A read need not. If it turns out to be a synchronising one, the
// first of them has taken in all that was released there, and nothing was since.
//
// Whether anything was done since is told by one word for each 16 bytes of memory (many such places
// share a word): who uses them, and a count that grows with each change of that. What was learnt at
// one value of the word holds as long as the word has it.
//
//     nobody --access--> one thread --read by another--> readers --write--> one thread
//                                   --write by another--> that thread
//     any --atomic access--> atomic --read--> atomic, read --write, atomic or not--> atomic
//     any --freed, allocated, cleared--> nobody
//
// Of blocks that are used atomically only reads are repeats: their writes may be synchronisation.
//
// Used by the agent (repeats.cpp, fast_repeats.S) and by the monitor, which sees the same memory.
// Freestanding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "guest-agent/layout.h"
#include "guest-agent/sector_use.h"

namespace trapline::agent {

inline constexpr unsigned kRepeatThreads = 16;  // more have no table: all they do is told
inline constexpr unsigned kRepeatBlock = 16;    // bytes
inline constexpr unsigned kRepeatWord = 4;      // bytes
inline constexpr unsigned kRepeatPieces = 4;    // words of a block, bytes of a word
inline constexpr std::uint32_t kRepeatBlocks = 1u << TRAPLINE_REPEAT_BLOCK_BITS;
inline constexpr std::uint32_t kRepeatLines = 1u << TRAPLINE_REPEAT_LINE_BITS;  // at most
inline constexpr std::uint32_t kLinesInPage = 64;
inline constexpr std::size_t kRepeatHugePage = 2 << 20;  // bytes

// What a block's word says in its lower bits. From 1 to kRepeatThreads: the thread that has this
// number alone uses it.
enum BlockUse : std::uint32_t {
  kUsedByNobody = 0,
  kUsedByOthers = kRepeatThreads + 1,  // threads without a table
  kReadByAll,
  kUsedAtomically,  // not read since it was written
  kReadAtomically,  // by any threads
};
inline constexpr unsigned kBlockUseBits = TRAPLINE_REPEAT_USE_BITS;
inline constexpr std::uint32_t kBlockUseMask = (1u << kBlockUseBits) - 1;
static_assert(kReadAtomically <= kBlockUseMask);
constexpr bool IsUsedAtomically(std::uint32_t use) { return use >= kUsedAtomically; }

// What a thread has done with a block by accesses of whole words, or with one of its words by
// accesses of bytes: an entry of its table, where each of these has one place.
struct alignas(64) RepeatLine {
  // Which one in the lower bits (LinePart::number); above, a bit for each piece of it that was
  // read, and for each that was written: whether that was told at the present `use`; and for each
  // whether the monitor has granted writing it, because that is plain. 0: none.
  std::uint64_t entry;
  std::uint32_t use;  // the block's word when the accesses were told
  std::uint32_t unused;
  // Of each piece's last repeated read, and write: lower half of the number of the event that was
  // next, 0: not repeated since it was told.
  std::uint32_t moments[2][kRepeatPieces];
  // The site (translator/access_site.h) of each piece's last repeated read. Those of writes, which
  // are fewer, are in RepeatTableMemory::write_sites.
  std::uint32_t read_sites[kRepeatPieces];
};
static_assert(sizeof(RepeatLine) == 64 && offsetof(RepeatLine, use) == TRAPLINE_REPEAT_LINE_USE &&
              offsetof(RepeatLine, moments) == TRAPLINE_REPEAT_LINE_MOMENTS &&
              offsetof(RepeatLine, read_sites) == TRAPLINE_REPEAT_LINE_READ_SITES);
inline constexpr unsigned kToldShift = TRAPLINE_REPEAT_TOLD_SHIFT;
inline constexpr unsigned kGrantedShift = kToldShift + kRepeatPieces;
inline constexpr std::uint64_t kLineNumber = (1ull << kToldShift) - 1;
inline constexpr std::uint64_t kAllTold = ((1ull << 2 * kRepeatPieces) - 1) << kToldShift;
inline constexpr std::uint64_t kBytewise = 1ull << TRAPLINE_REPEAT_BYTEWISE_BIT;

// A block's word is use[IndexOf(address / kRepeatBlock)].
constexpr std::uint32_t IndexOf(std::uint64_t block) {
  return static_cast<std::uint32_t>(block ^ block >> 20) & (kRepeatBlocks - 1);
}
// Of lines: what they are for begins there, has kRepeatPieces pieces of so many bytes, and belongs
// to the block whose word has this index.
constexpr std::uint32_t GrainOf(std::uint64_t number) {
  return (number & kBytewise) != 0 ? 1 : kRepeatWord;
}
constexpr std::uint64_t AddressOf(std::uint64_t number) {
  return (number & ~kBytewise) * kRepeatPieces * GrainOf(number);
}
constexpr std::uint32_t IndexOfLine(std::uint64_t number) {
  return IndexOf(AddressOf(number) / kRepeatBlock);
}
// Where they are in a table with this line_mask: that of a block, and those of its words.
constexpr std::uint32_t LineOf(std::uint32_t index, std::uint32_t mask) { return index & mask; }
constexpr std::uint32_t BytewiseLineOf(std::uint32_t index, unsigned word, std::uint32_t mask) {
  return (index * kRepeatPieces + word) & mask;
}

// A line that had to make room for another although it was good, if IsSampled. Who tells of the
// same again, at the same use, has a table that is too small for what it comes back to; one that
// is full of what is used once only is not.
struct DisplacedLine {
  std::uint32_t number;  // the lower half
  std::uint32_t use;
};
inline constexpr unsigned kDisplacedSample = 64;  // one of so many
inline constexpr std::uint32_t kDisplacedLines = 4096;
constexpr std::uint32_t HashOfLine(std::uint64_t number) {
  return static_cast<std::uint32_t>(number * 0x9e3779b97f4a7c15u >> 32);
}
constexpr bool IsSampled(std::uint32_t hash) { return hash % kDisplacedSample == 0; }
constexpr std::uint32_t DisplacedIndex(std::uint32_t hash) {
  return hash / kDisplacedSample % kDisplacedLines;
}

// The part of an access that belongs to one line.
struct LinePart {
  std::uint64_t number;  // address / kRepeatBlock, or kBytewise and address / kRepeatWord
  std::uint32_t index;
  std::uint32_t line;
  std::uint32_t first, count;  // pieces

  // Its bits in an entry.
  constexpr std::uint64_t told(bool write) const {
    return ((1ull << count) - 1) << (first + (write ? kRepeatPieces : 0)) << kToldShift;
  }
  constexpr std::uint64_t granted() const { return told(true) << (kGrantedShift - kToldShift); }
  constexpr std::uint64_t wanted(bool write) const { return told(write) | (write ? granted() : 0); }
};

// Whole words, or some bytes of one word.
constexpr bool MayRepeat(std::uint64_t address, std::uint64_t size) {
  constexpr std::uint64_t kMost = 64;
  if (size == 0 || size > kMost || address >> 47 != 0) return false;
  return (address | size) % kRepeatWord == 0 || address % kRepeatWord + size <= kRepeatWord;
}

// Calls visit(const LinePart&) -> bool for the parts of an access that MayRepeat, until one
// answers false. Whether none did. `mask`: the table's line_mask.
template <class Visit>
[[gnu::always_inline]] constexpr bool ForEachPart(std::uint64_t address, std::uint64_t size,
                                                  std::uint32_t mask, Visit&& visit) {
  if ((address | size) % kRepeatWord != 0) {
    const std::uint32_t index = IndexOf(address / kRepeatBlock);
    return visit(LinePart{kBytewise | address / kRepeatWord, index,
                          BytewiseLineOf(index, address % kRepeatBlock / kRepeatWord, mask),
                          static_cast<std::uint32_t>(address % kRepeatWord),
                          static_cast<std::uint32_t>(size)});
  }
  const std::uint64_t end = address + size;
  while (address < end) {
    const std::uint64_t block = address / kRepeatBlock;
    const std::uint64_t next = (block + 1) * kRepeatBlock;
    const std::uint32_t index = IndexOf(block);
    const std::uint64_t length = (next < end ? next : end) - address;
    if (!visit(LinePart{block, index, LineOf(index, mask),
                        static_cast<std::uint32_t>(address % kRepeatBlock / kRepeatWord),
                        static_cast<std::uint32_t>(length / kRepeatWord)})) {
      return false;
    }
    address = next;
  }
  return true;
}

inline std::uint64_t NumberOf(const RepeatLine& line) {
  return __atomic_load_n(&line.entry, __ATOMIC_ACQUIRE) & kLineNumber;
}
// Nothing was repeated there.
inline void ForgetMoments(RepeatLine& line) {
  for (auto& moments : line.moments) {
    for (std::uint32_t& moment : moments) __atomic_store_n(&moment, 0, __ATOMIC_RELAXED);
  }
}
// The number of which `moment` is the lower half, and that is not later than `now`.
constexpr std::uint64_t WholeMoment(std::uint64_t now, std::uint32_t moment) {
  return now - static_cast<std::uint32_t>(now - moment);
}

// At TRAPLINE_REPEATS, the same for all threads and the monitor. What native code uses, too.
struct RepeatMemory {
  std::uint64_t enabled;                  // else nothing is a repeat
  std::uint64_t keeps_sector_use;         // else sectors never settle
  std::uint64_t threads[kRepeatThreads];  // logical number + 1; 0: free
  // How many lines each thread's table has, less one; a power of two less one. Changes when the
  // thread is not about to find or to note a repeat, and has none noted: so who has changed a
  // block's word and asks then where the thread's lines are finds what was noted before.
  std::uint32_t line_mask[kRepeatThreads];
  // Which pages of a table may have a line that is in peace, or of which something repeated has not
  // been told, a bit each. The thread sets it once the line is so; the monitor takes it back where
  // it finds none.
  std::uint64_t used[kRepeatThreads][kRepeatLines / kLinesInPage / 64];
  DisplacedLine displaced[kRepeatThreads][kDisplacedLines];
  std::uint8_t leaves_out_reads;  // some site does (AccessSite::leaves_out), or has, or soon will
  alignas(kRepeatHugePage) std::uint32_t use[kRepeatBlocks];
  // Which of a block's words have a line of their own in a table, a bit each. Never taken back.
  alignas(kRepeatHugePage) std::uint8_t bytewise[kRepeatBlocks];
  SectorMemory sectors;
};
// At TRAPLINE_REPEAT_TABLES, likewise. Only what is used has memory.
struct RepeatTableMemory {
  RepeatLine tables[kRepeatThreads][kRepeatLines];
  // The site of each piece's last repeated write.
  std::uint32_t write_sites[kRepeatThreads][kRepeatLines][kRepeatPieces];
};
static_assert(offsetof(RepeatMemory, enabled) == 0);
static_assert(offsetof(RepeatMemory, keeps_sector_use) ==
              TRAPLINE_KEEPS_SECTOR_USE - TRAPLINE_REPEATS);
static_assert(offsetof(RepeatMemory, sectors) == TRAPLINE_SECTOR_USE - TRAPLINE_REPEATS);
static_assert(offsetof(RepeatMemory, sectors) + offsetof(SectorMemory, subsectors) ==
              TRAPLINE_SUBSECTOR_USE - TRAPLINE_REPEATS);
static_assert(kSectorUsers == kRepeatThreads);
static_assert(offsetof(RepeatMemory, use) == TRAPLINE_REPEAT_USE - TRAPLINE_REPEATS);
static_assert(TRAPLINE_REPEATS + sizeof(RepeatMemory) <= TRAPLINE_CACHE_END);
static_assert(TRAPLINE_REPEAT_TABLES + sizeof(RepeatTableMemory) == TRAPLINE_REPEAT_TABLES_END);

inline RepeatMemory& Repeats() { return *reinterpret_cast<RepeatMemory*>(TRAPLINE_REPEATS); }
inline RepeatTableMemory& TableMemory() {
  return *reinterpret_cast<RepeatTableMemory*>(TRAPLINE_REPEAT_TABLES);
}
inline RepeatLine* TableOf(unsigned slot) { return TableMemory().tables[slot]; }

// Of RepeatMemory::used, for the page of a line.
inline std::uint64_t& UsedWord(unsigned slot, std::uint32_t line) {
  return Repeats().used[slot][line / kLinesInPage / 64];
}
constexpr std::uint64_t UsedBit(std::uint32_t line) { return 1ull << line / kLinesInPage % 64; }

// The sites of a line's pieces.
inline std::uint32_t* SitesOf(unsigned slot, std::uint32_t line, bool write) {
  return write ? TableMemory().write_sites[slot][line] : TableOf(slot)[line].read_sites;
}

inline std::uint32_t WordOf(std::uint32_t index) {
  return __atomic_load_n(&Repeats().use[index], __ATOMIC_ACQUIRE);
}
inline std::uint32_t UseOf(std::uint32_t index) { return WordOf(index) & kBlockUseMask; }

// Whether nothing has ended the peace that the line's accesses were told in.
inline bool IsInPeace(const RepeatLine& line) {
  return line.use == WordOf(IndexOfLine(NumberOf(line)));
}

inline std::uint32_t LineMaskOf(unsigned slot) {
  return __atomic_load_n(&Repeats().line_mask[slot], __ATOMIC_ACQUIRE);
}

// Calls visit(RepeatLine&) for the lines of a table where the blocks with this index have their
// places: those of others may be there.
template <class Visit>
void ForEachLineOf(unsigned slot, std::uint32_t index, Visit&& visit) {
  RepeatLine* const table = TableOf(slot);
  const std::uint32_t mask = LineMaskOf(slot);
  visit(table[LineOf(index, mask)]);
  const unsigned words = __atomic_load_n(&Repeats().bytewise[index], __ATOMIC_ACQUIRE);
  for (unsigned word = 0; words >> word != 0; ++word) {
    if ((words >> word & 1) != 0) visit(table[BytewiseLineOf(index, word, mask)]);
  }
}

// Repeats that are told at once: pieces one after the other that were last repeated at one moment
// by one instruction.
struct Repeat {
  std::uint64_t address;
  std::uint32_t size;
  bool write;
  std::uint32_t site;
  std::uint32_t moment;
};

struct AnyMoment {
  constexpr bool operator()(std::uint32_t) const { return true; }
};

// Calls visit(slot, const Repeat&) for what the thread in `slot` has repeated in the line at a
// moment that is wanted(moment). Each repeat is told once. What was noted while the table was
// discarded has no line or no site any more, and is lost.
template <class Visit, class Wanted = AnyMoment>
void TakeRepeats(unsigned slot, RepeatLine& line, Visit&& visit, Wanted&& wanted = {}) {
  if (NumberOf(line) == 0) return;
  const std::uint32_t number = static_cast<std::uint32_t>(&line - TableOf(slot));
  const std::uint64_t address = AddressOf(NumberOf(line));
  const std::uint32_t grain = GrainOf(NumberOf(line));
  for (unsigned write = 0; write < 2; ++write) {
    Repeat repeat{};
    for (unsigned piece = 0; piece < kRepeatPieces; ++piece) {
      std::uint32_t& last = line.moments[write][piece];
      std::uint32_t moment = __atomic_load_n(&last, __ATOMIC_ACQUIRE);
      // Its thread may repeat it once more at the same time.
      while (moment != 0 && wanted(moment) &&
             !__atomic_compare_exchange_n(&last, &moment, 0, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE)) {
      }
      if (moment == 0 || !wanted(moment)) continue;
      const std::uint32_t site = SitesOf(slot, number, write != 0)[piece];
      if (site == 0) continue;
      const std::uint64_t at = address + piece * grain;
      if (repeat.size != 0 && repeat.moment == moment && repeat.site == site &&
          repeat.address + repeat.size == at) {
        repeat.size += grain;
        continue;
      }
      if (repeat.size != 0) visit(slot, repeat);
      repeat = {at, grain, write != 0, site, moment};
    }
    if (repeat.size != 0) visit(slot, repeat);
  }
}

// Likewise for all lines of a block whose word was `use`.
template <class Visit>
void TakeRepeats(unsigned slot, std::uint32_t index, std::uint32_t use, Visit&& visit) {
  ForEachLineOf(slot, index, [&](RepeatLine& line) {
    if (line.use == use && IndexOfLine(NumberOf(line)) == index) TakeRepeats(slot, line, visit);
  });
}

// kAtomicRead: an atomic one that is told anyway.
enum class Touch : std::uint8_t { kRead, kWrite, kAtomicRead, kAtomicWrite };

// What the use of a block becomes by a touch of `user`; the same: peace goes on.
constexpr std::uint32_t UseAfter(std::uint32_t use, Touch touch, std::uint32_t user) {
  if (IsUsedAtomically(use)) {
    return touch == Touch::kAtomicRead ? use
           : touch == Touch::kRead     ? kReadAtomically
                                       : kUsedAtomically;
  }
  if (touch == Touch::kAtomicRead || touch == Touch::kAtomicWrite) return kUsedAtomically;
  if (touch == Touch::kWrite || use == user || use == kUsedByNobody) return user;
  return kReadByAll;
}

// The word of the block after it was touched by the thread that is `user` there. Calls visit as
// TakeRepeats does for what ends by it.
template <class Visit>
std::uint32_t TouchBlock(std::uint32_t index, Touch touch, std::uint32_t user, Visit&& visit) {
  std::uint32_t& word = Repeats().use[index];
  std::uint32_t before = __atomic_load_n(&word, __ATOMIC_ACQUIRE);
  for (;;) {
    const std::uint32_t use = before & kBlockUseMask;
    const std::uint32_t next = UseAfter(use, touch, user);
    if (next == use) return before;
    const std::uint32_t after = (before | kBlockUseMask) + 1 + next;
    if (!__atomic_compare_exchange_n(&word, &before, after, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_ACQUIRE)) {
      continue;
    }
    if (use >= 1 && use <= kRepeatThreads) {
      TakeRepeats(use - 1, index, before, visit);
    } else if (use == kReadByAll || use == kReadAtomically) {
      for (unsigned slot = 0; slot < kRepeatThreads; ++slot) {
        if (Repeats().threads[slot] != 0) TakeRepeats(slot, index, before, visit);
      }
    }
    return after;
  }
}

constexpr SectorTouch SectorTouchOf(Touch touch) {
  return touch == Touch::kRead    ? SectorTouch::kRead
         : touch == Touch::kWrite ? SectorTouch::kWrite
                                  : SectorTouch::kAtomic;
}

// Calls touch(index) for the blocks of [address, address + size), once each.
template <class Visit>
void ForEachBlock(std::uint64_t address, std::uint64_t size, Visit&& visit) {
  if (size == 0) return;
  const std::uint64_t first = address / kRepeatBlock;
  std::uint64_t last = (address + size - 1) / kRepeatBlock;
  if (last - first >= kRepeatBlocks) last = first + kRepeatBlocks - 1;  // those are all
  for (std::uint64_t block = first; block <= last; ++block) visit(IndexOf(block));
}

}  // namespace trapline::agent
