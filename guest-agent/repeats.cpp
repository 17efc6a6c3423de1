// The part of the code cache's slow path that finds repeats (repeats.h). Freestanding, copied into
// the guest with agent.S: no library, no data, general registers only.
#include "guest-agent/repeats.h"

#include "guest-agent/agent.h"
#include "translator/access_site.h"
#include "translator/register_file.h"

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

// trapline_agent_cache_access has seen to it that there is room for what one access ends; a long
// one may end more. Room for the access itself stays.
void QueueRepeat(unsigned slot, const Repeat& repeat) {
  constexpr std::uint64_t kMost = TRAPLINE_QUEUE_ENTRIES - TRAPLINE_MOST_FRAMES_AT_ONCE - 4;
  ThreadPage& page = Page();
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
               std::uint64_t{repeat.size} << TRAPLINE_QUEUED_REPEAT_SIZE;
  event.address = repeat.address;
  event.size = WholeMoment(now, repeat.moment);
  event.ip = At<const AccessSite>(repeat.site).rip;
  __atomic_store_n(&page.queue_head, head + 1, __ATOMIC_RELEASE);
}

void TouchRange(std::uint64_t address, std::uint64_t size, Touch touch) {
  const auto user = static_cast<std::uint32_t>(Page().repeat_user);
  ForEachBlock(address, size,
               [&](std::uint32_t index) { TouchBlock(index, touch, user, QueueRepeat); });
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
  if (site.repeated == 0 || (registers.rflags & kDownwards) != 0 || gpr[kRcx] >> 40 != 0) return;
  const std::uint64_t size = gpr[kRcx] << (site.repeated - 1);
  if (site.read) TouchRange(gpr[kRsi], size, Touch::kRead);
  if (site.write) TouchRange(gpr[kRdi], size, Touch::kWrite);
}

// The words of the site's last repeats, in the thread's own part.
[[gnu::always_inline]] inline void Note(RepeatLine& line, unsigned slot, std::uint32_t index,
                                        const AccessSite& site, std::uint64_t address) {
  std::uint32_t moment = static_cast<std::uint32_t>(NextEvent());
  if (moment == 0) --moment;  // a little too early
  const unsigned word = address % kRepeatBlock / kRepeatWord;
  const auto number = static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(&site));
  std::uint32_t* const moments = &line.moments[site.write ? 1 : 0][word];
  std::uint32_t* const sites = &Repeats().sites[slot][LineOf(index)][site.write ? 1 : 0][word];
  for (unsigned i = 0; i < site.size / kRepeatWord; ++i) {
    sites[i] = number;
    __atomic_store_n(&moments[i], moment, __ATOMIC_RELEASE);
  }
}

}  // namespace

// Whatever needs more than a look. True: the access is a repeat.
[[gnu::section("trapline_repeats"), gnu::flatten, gnu::noinline, gnu::visibility("hidden")]] bool
FindRepeat(const AccessSite* site, std::uint64_t address, const RegisterFile* registers);

}  // namespace trapline::agent

// The usual repeat; FindRepeat does the rest.
[[gnu::section("trapline_repeats"), gnu::flatten]] bool trapline_agent_repeats(
    const trapline::AccessSite* site, std::uint64_t address,
    const trapline::RegisterFile* registers) {
  using namespace trapline::agent;
  ThreadPage& page = Page();
  const auto user = static_cast<std::uint32_t>(page.repeat_user);
  if (registers == nullptr && site->plain && user <= kRepeatThreads &&
      MayRepeat(address, site->size)) {
    const std::uint32_t index = IndexOf(address / kRepeatBlock);
    RepeatLine& line = Repeats().tables[user - 1][LineOf(index)];
    const std::uint64_t words = WordsOf(address, site->size, site->write);
    const std::uint64_t wanted = words << kToldShift | words << kGrantedShift;
    const std::uint64_t entry = __atomic_load_n(&line.block, __ATOMIC_RELAXED);
    if (((entry ^ address / kRepeatBlock) & kBlockNumber) == 0 && (entry & wanted) == wanted &&
        line.use == __atomic_load_n(&Repeats().use[index], __ATOMIC_ACQUIRE)) {
      Note(line, user - 1, index, *site, address);
      // Who has ended the peace meanwhile may not have seen the note.
      __atomic_thread_fence(__ATOMIC_SEQ_CST);
      if (line.use == __atomic_load_n(&Repeats().use[index], __ATOMIC_ACQUIRE)) {
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
  const Touch touch = site->atomic ? Touch::kAtomic : site->write ? Touch::kWrite : Touch::kRead;
  if (site->atomic || user > kRepeatThreads || !MayRepeat(address, size)) {
    TouchRange(address, size, touch);
    return false;
  }
  RepeatMemory& memory = Repeats();
  const unsigned slot = user - 1;
  const std::uint64_t block = address / kRepeatBlock;
  const std::uint32_t index = IndexOf(block);
  RepeatLine& line = memory.tables[slot][LineOf(index)];
  const std::uint32_t use = TouchBlock(index, touch, user, QueueRepeat);
  if ((use & kBlockUseMask) == kUsedAtomically) return false;
  const std::uint64_t words = WordsOf(address, size, site->write);
  const std::uint64_t entry = __atomic_load_n(&line.block, __ATOMIC_RELAXED);
  if ((entry & kBlockNumber) == block) {
    if (line.use != use) {
      // Told at another use: the repeats have been taken by who ended that. (If memory was cleared
      // that has a part of the block only, the monitor may not have got to it, and loses those of
      // the rest: what was told once stays told.) What is plain stays so.
      ForgetMoments(line);
      __atomic_fetch_and(&line.block, ~(kAllWords << kToldShift), __ATOMIC_ACQ_REL);
      line.use = use;
    }
    // The monitor may grant at the same time.
    __atomic_fetch_or(&line.block, words << kToldShift, __ATOMIC_ACQ_REL);
    return false;
  }
  // Another block's place. What was repeated there is told if it still holds.
  if (entry != 0 &&
      line.use == __atomic_load_n(&memory.use[IndexOf(entry & kBlockNumber)], __ATOMIC_ACQUIRE)) {
    TakeRepeats(slot, line, QueueRepeat);
  }
  ForgetMoments(line);
  __atomic_store_n(&line.block, block | words << kToldShift, __ATOMIC_RELEASE);
  line.use = use;
  const std::uint32_t in_page = LineOf(index) / kLinesInPage;
  memory.used[slot][in_page / 64] |= 1ull << in_page % 64;
  return false;
}

}  // namespace trapline::agent
