// The part of the code cache's slow path that finds repeats (repeats.h). Freestanding, copied into
// the guest with agent.S: no library, no data, general registers only.
#include "guest-agent/repeats.h"

#include "guest-agent/agent.h"
#include "translator/access_site.h"
#include "translator/register_file.h"

static_assert(offsetof(trapline::AccessSite, leaves_out) == TRAPLINE_SITE_LEAVES_OUT);
static_assert(offsetof(trapline::AccessSite, cold) == TRAPLINE_SITE_COLD);

// Out of line, and copied with the rest.
#define TRAPLINE_AGENT_FUNCTION [[gnu::section("trapline_repeats"), gnu::flatten, gnu::noinline]]

namespace trapline::agent {
namespace {

template <class T>
T& At(std::uint64_t address) {
  return *reinterpret_cast<T*>(address);
}

ThreadPage& Page() { return At<ThreadPage>(TRAPLINE_THREAD_PAGE); }

std::uint64_t NextEvent() {
  return __atomic_load_n(&At<std::uint64_t>(TRAPLINE_SHARED_PAGE), __ATOMIC_RELAXED);
}

// trapline_agent_cache_access has seen to it that there is room for what one access ends; one of
// several blocks may end more, and so may one of a block whose words have lines of their own. Room
// for the access itself stays.
void QueueRepeat(unsigned slot, const Repeat& repeat) {
  constexpr std::uint64_t kMost =
      TRAPLINE_QUEUE_ENTRIES - TRAPLINE_MOST_FRAMES_AT_ONCE - TRAPLINE_MOST_HELD - 4;
  ThreadPage& page = Page();
  const auto& site = At<const AccessSite>(repeat.site);
  // A number of its own: whoever drains the queues has then seen what its thread queued before.
  const std::uint64_t head = page.queue_head;
  const std::uint64_t now =
      __atomic_add_fetch(&At<std::uint64_t>(TRAPLINE_SHARED_PAGE), 1, __ATOMIC_SEQ_CST);
  while (head - __atomic_load_n(&page.queue_tail, __ATOMIC_ACQUIRE) >= kMost)
    asm volatile("outb %%al, %0" : : "N"(TRAPLINE_PORT_QUEUE_FULL) : "memory");
  QueuedEvent& event =
      (&At<QueuedEvent>(TRAPLINE_EVENT_QUEUE))[head & (TRAPLINE_QUEUE_ENTRIES - 1)];
  event.sequence = now;
  event.kind = TRAPLINE_QUEUED_REPEAT | (Repeats().threads[slot] - 1) << 32 |
               (repeat.write ? TRAPLINE_QUEUED_REPEAT_WRITE : 0) |
               (site.locked ? TRAPLINE_QUEUED_REPEAT_LOCKED : 0) |
               std::uint64_t{repeat.size} << TRAPLINE_QUEUED_REPEAT_SIZE;
  event.address = repeat.address;
  event.size = WholeMoment(now, repeat.moment);
  event.ip = site.rip;
  __atomic_store_n(&page.queue_head, head + 1, __ATOMIC_RELEASE);
}

TRAPLINE_AGENT_FUNCTION std::uint32_t TouchIndex(std::uint32_t index, Touch touch,
                                                 std::uint32_t user) {
  return TouchBlock(index, touch, user, QueueRepeat);
}

void TouchRange(std::uint64_t address, std::uint64_t size, Touch touch) {
  const auto user = static_cast<std::uint32_t>(Page().repeat_user);
  if (Repeats().keeps_sector_use != 0)
    Repeats().sectors.Touch(address, size, SectorTouchOf(touch), user);
  if (Repeats().enabled == 0) return;
  ForEachBlock(address, size, [&](std::uint32_t index) { TouchIndex(index, touch, user); });
}

Touch TouchOf(const AccessSite& site) {
  if (site.atomic) return site.write ? Touch::kAtomicWrite : Touch::kAtomicRead;
  return site.write ? Touch::kWrite : Touch::kRead;
}

// What the runtime reports of its caller, and string instructions.
void TouchByRegisters(const AccessSite& site, const RegisterFile& registers) {
  const auto& gpr = registers.gpr;
  if (site.report) {
    if (gpr[kRdi] == TRAPLINE_READ || gpr[kRdi] == TRAPLINE_WRITE) {
      TouchRange(gpr[kRsi], gpr[kRdx], gpr[kRdi] == TRAPLINE_WRITE ? Touch::kWrite : Touch::kRead);
    }
    return;
  }
  // Others, and those that the monitor is asked about, are its own.
  constexpr std::uint64_t kDownwards = 0x400;
  if (site.repeated == 0 || site.repeated == AccessSite::kElements) return;
  if ((registers.rflags & kDownwards) != 0 || gpr[kRcx] >> 40 != 0) return;
  const std::uint64_t size = gpr[kRcx] << (site.repeated - 1);
  if (site.read) TouchRange(gpr[kRsi], size, Touch::kRead);
  if (site.write) TouchRange(gpr[kRdi], size, Touch::kWrite);
}

// So long before a site leaves out reads the monitor learns that one will: who has asked what it
// need not tell of, and then waits for something else, may leave it out by an old answer.
constexpr std::int16_t kSoonHot = 512;  // checks

// The site is about to make an access that is checked.
void NoteSectorUse(const AccessSite& site, std::uint64_t address) {
  const auto user = static_cast<std::uint32_t>(Page().repeat_user);
  Repeats().sectors.Touch(address, site.size,
                          site.locked ? SectorTouch::kAtomic : SectorTouchOf(TouchOf(site)), user);
  // Several threads may count it at a time.
  const std::int16_t cold = __atomic_load_n(&site.cold, __ATOMIC_RELAXED);
  if (cold > 0) {
    __atomic_store_n(&site.cold, static_cast<std::int16_t>(cold - 1), __ATOMIC_RELAXED);
    if (cold > kSoonHot) return;
  }
  if (!site.plain || site.atomic || site.locked || site.leaves_out != 0) return;
  std::uint8_t& reads = Repeats().leaves_out_reads;
  if (!site.write && __atomic_load_n(&reads, __ATOMIC_RELAXED) == 0)
    __atomic_store_n(&reads, 1, __ATOMIC_SEQ_CST);
  if (cold <= 0) site.leaves_out = site.write ? kLeaveOutWrites : kLeaveOutReads;
}

// The part of the site's last repeat.
[[gnu::always_inline]] inline void Note(unsigned slot, const LinePart& part, const AccessSite& site,
                                        std::uint32_t moment) {
  const auto number = static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(&site));
  const unsigned write = site.write ? 1 : 0;
  std::uint32_t* const moments = TableOf(slot)[part.line].moments[write];
  std::uint32_t* const sites = SitesOf(slot, part.line, site.write);
  for (std::uint32_t i = part.first; i < part.first + part.count; ++i) {
    sites[i] = number;
    __atomic_store_n(&moments[i], moment, __ATOMIC_RELEASE);
  }
}

// The line `displaced` (0: none), told at `then`, has made room for `number`, told at `now`.
void NoteDisplaced(unsigned slot, std::uint64_t displaced, std::uint32_t then, std::uint64_t number,
                   std::uint32_t now) {
  DisplacedLine* const lines = Repeats().displaced[slot];
  if (const std::uint32_t hash = HashOfLine(number); IsSampled(hash)) {
    DisplacedLine& line = lines[DisplacedIndex(hash)];
    if (line.number == static_cast<std::uint32_t>(number) && line.use == now) {
      ++Page().repeats_missed;
      line = {};
    }
  }
  if (displaced == 0) return;
  if (const std::uint32_t hash = HashOfLine(displaced); IsSampled(hash))
    lines[DisplacedIndex(hash)] = {static_cast<std::uint32_t>(displaced), then};
}

// The part's line is good.
void NoteUsed(unsigned slot, const LinePart& part) {
  __atomic_fetch_or(&UsedWord(slot, part.line), UsedBit(part.line), __ATOMIC_SEQ_CST);
}

// The part was told, or is about to be.
TRAPLINE_AGENT_FUNCTION void NoteTold(unsigned slot, const LinePart& part, bool write,
                                      std::uint32_t use) {
  RepeatMemory& memory = Repeats();
  RepeatLine& line = TableOf(slot)[part.line];
  const std::uint64_t entry = __atomic_load_n(&line.entry, __ATOMIC_RELAXED);
  if ((entry & kLineNumber) == part.number) {
    if (line.use != use) {
      // Told at another use: the repeats have been taken by who ended that. (If memory was cleared
      // that has a part of the block only, the monitor may not have got to it, and loses those of
      // the rest: what was told once stays told.) What is plain stays so.
      ForgetMoments(line);
      __atomic_fetch_and(&line.entry, ~kAllTold, __ATOMIC_ACQ_REL);
      line.use = use;
      NoteUsed(slot, part);
    }
    // The monitor may grant at the same time.
    __atomic_fetch_or(&line.entry, part.told(write), __ATOMIC_ACQ_REL);
    return;
  }
  // The place of something else. What was repeated there is told if it still holds.
  const bool displaces = entry != 0 && IsInPeace(line);
  NoteDisplaced(slot, displaces ? entry & kLineNumber : 0, line.use, part.number, use);
  if (displaces) TakeRepeats(slot, line, QueueRepeat);
  ForgetMoments(line);
  // Who ends this peace is to find the line.
  if ((part.number & kBytewise) != 0) {
    __atomic_fetch_or(&memory.bytewise[part.index],
                      static_cast<std::uint8_t>(1u << part.number % kRepeatPieces),
                      __ATOMIC_SEQ_CST);
  }
  __atomic_store_n(&line.entry, part.number | part.told(write), __ATOMIC_RELEASE);
  line.use = use;
  NoteUsed(slot, part);
}

}  // namespace

// Whatever needs more than a look, but for what trapline_agent_queued does. True: the access is a
// repeat.
[[gnu::visibility("hidden")]] TRAPLINE_AGENT_FUNCTION bool FindRepeat(
    const AccessSite* site, std::uint64_t address, const RegisterFile* registers);

}  // namespace trapline::agent

// The usual repeat; FindRepeat does the rest.
[[gnu::section("trapline_repeats"), gnu::flatten]] bool trapline_agent_repeats(
    const trapline::AccessSite* site, std::uint64_t address,
    const trapline::RegisterFile* registers) {
  using namespace trapline::agent;
  ThreadPage& page = Page();
  const auto user = static_cast<std::uint32_t>(page.repeat_user);
  if (Repeats().keeps_sector_use != 0 && registers == nullptr && !site->done)
    NoteSectorUse(*site, address);
  if (Repeats().enabled == 0 && registers == nullptr) return false;
  if (registers == nullptr && !site->atomic && !site->done && (site->plain || !site->write) &&
      user <= kRepeatThreads && MayRepeat(address, site->size)) {
    const unsigned slot = user - 1;
    const std::uint32_t mask = LineMaskOf(slot);
    const bool told = ForEachPart(address, site->size, mask, [&](const LinePart& part) {
      const RepeatLine& line = TableOf(slot)[part.line];
      const std::uint64_t entry = __atomic_load_n(&line.entry, __ATOMIC_RELAXED);
      const std::uint64_t wanted = part.wanted(site->write);
      return (entry & kLineNumber) == part.number && (entry & wanted) == wanted && IsInPeace(line);
    });
    if (told) {
      std::uint32_t moment = static_cast<std::uint32_t>(NextEvent());
      if (moment == 0) --moment;  // a little too early
      ForEachPart(address, site->size, mask, [&](const LinePart& part) {
        Note(slot, part, *site, moment);
        return true;
      });
      // Who has ended the peace meanwhile, or discarded the table, may not have seen the note.
      __atomic_thread_fence(__ATOMIC_SEQ_CST);
      if (ForEachPart(address, site->size, mask, [&](const LinePart& part) {
            const RepeatLine& line = TableOf(slot)[part.line];
            return NumberOf(line) == part.number && IsInPeace(line);
          })) {
        ++page.repeats;
        return true;
      }
    }
  }
  return FindRepeat(site, address, registers);
}

namespace trapline::agent {

bool FindRepeat(const AccessSite* site, std::uint64_t address, const RegisterFile* registers) {
  if (registers != nullptr) {
    TouchByRegisters(*site, *registers);
    return false;
  }
  if (site->done) return false;
  const std::uint32_t size = site->size;
  const auto user = static_cast<std::uint32_t>(Page().repeat_user);
  const bool write = site->write;
  const Touch touch = TouchOf(*site);
  const auto comes_later = [&](std::uint32_t index) {
    return (write || site->atomic) && IsUsedAtomically(UseOf(index));
  };
  if (site->atomic || user > kRepeatThreads || !MayRepeat(address, size)) {
    ForEachBlock(address, size, [&](std::uint32_t index) {
      if (!comes_later(index)) TouchIndex(index, touch, user);
    });
    return false;
  }
  ForEachPart(address, size, LineMaskOf(user - 1), [&](const LinePart& part) {
    if (comes_later(part.index)) return true;
    const std::uint32_t use = TouchIndex(part.index, touch, user);
    if (!write || !IsUsedAtomically(use & kBlockUseMask)) NoteTold(user - 1, part, write, use);
    return true;
  });
  return false;
}

}  // namespace trapline::agent

// What may be synchronisation touches blocks that are used atomically only now. Who reads there
// from now on is told of as reading before or after it, but before whatever ends the reader's
// epoch, and so has taken in what is given away here by then (ThreadState::watched). Were they
// touched before it is queued, the reader could come first, end its epoch, and then repeat, untold,
// what it reads of it.
[[gnu::section("trapline_repeats"), gnu::flatten]] void trapline_agent_queued(
    const trapline::AccessSite* site, std::uint64_t address) {
  using namespace trapline::agent;
  if (site->done) return;
  const auto user = static_cast<std::uint32_t>(Page().repeat_user);
  ForEachBlock(address, site->size, [&](std::uint32_t index) {
    if (IsUsedAtomically(UseOf(index))) TouchIndex(index, TouchOf(*site), user);
  });
}
