#include "hypervisor/guest_code_cache.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>

#include "guest-agent/agent.h"
#include "guest-agent/fast_repeats.h"
#include "hypervisor/clock.h"
#include "hypervisor/guest_copy.h"
#include "hypervisor/virtual_tables.h"

namespace trapline {
namespace {

static_assert(offsetof(CacheThread, filter) == TRAPLINE_CACHE_FILTER - TRAPLINE_CACHE_THREAD);
static_assert(sizeof(CacheThread::filter[0]) == TRAPLINE_CACHE_FILTER_PLANE);
static_assert(offsetof(CacheThread, program_rsp) ==
              TRAPLINE_CACHE_PROGRAM_RSP - TRAPLINE_CACHE_THREAD);
static_assert(offsetof(CacheThread, fs_base) == TRAPLINE_CACHE_FS_BASE - TRAPLINE_CACHE_THREAD);
static_assert(TRAPLINE_CACHE_TABLE + CacheMemory::kTableSize <= TRAPLINE_REDIRECTS);
static_assert(TRAPLINE_REDIRECTS_END <= TRAPLINE_CACHE_TABLE + TRAPLINE_CACHE_TABLE_STRIDE);
static_assert(offsetof(CacheThread, signature) == TRAPLINE_CACHE_SIGNATURE - TRAPLINE_CACHE_THREAD);
static_assert(offsetof(CacheThread, next_frame) ==
              TRAPLINE_CACHE_NEXT_FRAME - TRAPLINE_CACHE_THREAD);
static_assert(offsetof(CacheThread, leave_requested) ==
              TRAPLINE_CACHE_LEAVE_REQUESTED - TRAPLINE_CACHE_THREAD);
static_assert(offsetof(CacheThread, leave_after) ==
              TRAPLINE_CACHE_LEAVE_AFTER - TRAPLINE_CACHE_THREAD);
static_assert(offsetof(CacheThread, access_address) ==
              TRAPLINE_CACHE_ACCESS_ADDRESS - TRAPLINE_CACHE_THREAD);
static_assert(CacheThread::kShadowFrames == 1 << TRAPLINE_FRAME_BITS);
static_assert(CacheThread::kSignatureShift + 3 == 50);  // END_OF_EPOCH in agent.S
static_assert(TRAPLINE_CACHE_THREAD % alignof(CacheThread) == 0);
static_assert(TRAPLINE_CACHE_THREAD + sizeof(CacheThread) <=
              TRAPLINE_THREAD_PAGE + TRAPLINE_THREAD_PAGES * kPageSize);
static_assert(TRAPLINE_THREAD_PAGE + TRAPLINE_THREAD_PAGES * kPageSize <= TRAPLINE_AGENT_END);
static_assert(TRAPLINE_EVENT_QUEUE + TRAPLINE_QUEUE_ENTRIES * TRAPLINE_QUEUE_ENTRY_SIZE <=
              TRAPLINE_CACHE_THREAD);
static_assert(offsetof(AccessSite, size) == TRAPLINE_SITE_SIZE);
static_assert(offsetof(AccessSite, write) == TRAPLINE_SITE_WRITE);
static_assert(offsetof(AccessSite, atomic) == TRAPLINE_SITE_ATOMIC);
static_assert(offsetof(AccessSite, report) == TRAPLINE_SITE_REPORT);
static_assert(offsetof(AccessSite, read) == TRAPLINE_SITE_READ);
static_assert(offsetof(AccessSite, repeated) == TRAPLINE_SITE_REPEATED);
static_assert(offsetof(AccessSite, plain) == TRAPLINE_SITE_PLAIN);
static_assert(offsetof(RegisterFile, rflags) == TRAPLINE_FILE_RFLAGS);
static_assert(offsetof(RegisterFile, gpr) == 0 && kRcx * 8 == TRAPLINE_FILE_RCX &&
              kRdx * 8 == TRAPLINE_FILE_RDX && kRsi * 8 == TRAPLINE_FILE_RSI &&
              kRdi * 8 == TRAPLINE_FILE_RDI);
static_assert(TRAPLINE_TSS + 2 * kPageSize <= kMirrorOffset);
static_assert(CacheMemory::kTableSize <= TRAPLINE_CACHE_TABLE_STRIDE);
static_assert(TRAPLINE_CACHE_TABLE + 2 * TRAPLINE_CACHE_TABLE_STRIDE <= TRAPLINE_CACHE_SITES);
static_assert(TRAPLINE_CACHE_SITES + 2 * CacheMemory::kSitesSize <= TRAPLINE_CACHE_DATA_END);
static_assert(TRAPLINE_PARTIAL_CODE_SIZE == CodeCacheSize::kMost / 2);
static_assert(TRAPLINE_PARTIAL_CODE + TRAPLINE_PARTIAL_CODE_SIZE <= TRAPLINE_PARTIAL_TABLE);
static_assert(TRAPLINE_PARTIAL_TABLE + 2 * TRAPLINE_CACHE_TABLE_STRIDE <= TRAPLINE_PARTIAL_SITES);
static_assert(TRAPLINE_PARTIAL_SITES + 2 * CacheMemory::kSitesSize <= TRAPLINE_PARTIAL_DATA_END);
static_assert(TRAPLINE_PARTIAL_DATA_END <= TRAPLINE_CACHE_CODE);

// Its loops run for long before, and what is seldom run is always checked.
constexpr std::int16_t kColdChecks = 1024;

}  // namespace

GuestCodeCache::GuestCodeCache(Machine& machine, AddressSpace& space, Rules rules)
    : machine_(machine),
      space_(space),
      rules_(std::move(rules)),
      size_(rules_.size),
      ring0_system_calls_(machine.host().syscall_arrives_in_ring0) {
  // Who says how many blocks there are at most wants to see the cache in want of room.
  if (rules_.translate_after != 0 || size_.blocks != 0) {
    const unsigned requests = std::clamp(rules_.translate_after, 1u, CacheAdmission::kMost);
    admissions_.fill(CacheAdmission(requests, requests));
  }
  machine.ShowCodeCache(rules_.repeats);
  exit_offset_ = present(Coverage::kFull).exit_address() - CodeOf(Coverage::kFull);
  leave_offset_ = present(Coverage::kFull).leave_address() - CodeOf(Coverage::kFull);
  if (rules_.redirects != RedirectRule::kNever) {
    redirects_ = std::make_unique<Redirects>(machine, rules_.redirects);
    DropRedirects();
  }
}

void GuestCodeCache::MakeHalf(Coverage coverage, unsigned number) {
  const bool partial = coverage == Coverage::kPartial;
  TranslatorOptions options;
  options.read_code = [this](std::uint64_t address, std::uint8_t* to, std::size_t size) {
    return ReadCode(address, to, size);
  };
  options.instrument = [this, coverage](std::uint64_t rip) { return InstrumentAt(coverage, rip); };
  options.is_atomic = rules_.is_atomic;
  options.table_pointers = PointersToVirtualTables();
  options.after_atomic = true;
  options.handler =
      reinterpret_cast<AccessHandler>(agent::GuestAddressOf(trapline_agent_cache_access));
  options.mirror_offset = kMirrorOffset;
  options.report_at = agent::GuestAddressOf(trapline_agent_access_out);
  if (!ring0_system_calls_)
    options.system_call_entry = agent::GuestAddressOf(trapline_agent_syscall_cached);
  options.filter = rules_.filter;
  if (rules_.repeats) options.shortcut = agent::FastRepeat;
  if (rules_.sector_uses) {
    options.leaving_out = {TRAPLINE_SUBSECTOR_USE,  TRAPLINE_THREAD_NEED_NOT_TELL,
                           TRAPLINE_SUBSECTOR_BITS, kColdChecks,
                           TRAPLINE_SECTOR_USE,     TRAPLINE_SECTOR_BITS};
    options.cold_checks = [this](std::uint64_t rip) { return ColdChecks(rip); };
  }
  options.shadow_stack = true;
  options.code_size = static_cast<std::uint32_t>(HalfSizeOf(coverage));
  options.memory = {CodeOf(coverage) + number * HalfSizeOf(coverage),
                    (partial ? TRAPLINE_PARTIAL_TABLE : TRAPLINE_CACHE_TABLE) +
                        std::uint64_t{number} * TRAPLINE_CACHE_TABLE_STRIDE,
                    (partial ? TRAPLINE_PARTIAL_SITES : TRAPLINE_CACHE_SITES) +
                        std::uint64_t{number} * CacheMemory::kSitesSize,
                    TRAPLINE_CACHE_THREAD};
  options.exit_port = TRAPLINE_PORT_CACHE;
  // It is translated anew each time that another instruction is found to meet shared pages. With
  // 256 instructions ocean, fluidanimate and radiosity of bench/programs with four threads took 3
  // to 7% more processor time and 7 to 17 MiB more, with 24 radiosity 13%.
  if (partial) options.max_instructions = 64;
  if (size_.blocks != 0) {
    options.max_blocks = std::max(size_.blocks, CodeCacheSize::kFewestBlocks) / 2;
    // A region has at most one block for each instruction.
    options.max_instructions = std::min(options.max_instructions, options.max_blocks / 2);
  }
  HalfAt(coverage, number) = {std::make_unique<CodeCache>(std::move(options)), ++generation_};
}

CodeCache& GuestCodeCache::present(Coverage coverage) {
  if (PresentHalf(coverage).cache == nullptr) MakeHalf(coverage, PresentNumber(coverage));
  return *PresentHalf(coverage).cache;
}

Instrument GuestCodeCache::InstrumentAt(Coverage coverage, std::uint64_t rip) {
  // The C library's and the agent's own code is not checked, but reaches memory in the same way.
  if (!CodeBlockOf(rip).IsTracked(rip)) return Instrument::kMirror;
  const bool native = coverage == Coverage::kPartial && IsHot(rip) && !sharing_.contains(rip);
  return native ? Instrument::kNone : Instrument::kCheck;
}

bool GuestCodeCache::IsHot(std::uint64_t rip) const {
  return rules_.settle_after == 0 || hot_.contains(rip);
}

// What is translated once more goes on from where it was, or each region would be told of anew.
std::int16_t GuestCodeCache::ColdChecks(std::uint64_t rip) const {
  if (IsHot(rip)) return 0;
  std::int16_t checks = kColdChecks;
  for (const Half& half : halves_) {
    if (half.cache != nullptr)
      checks = std::min(checks, half.cache->ColdChecks(rip).value_or(kColdChecks));
  }
  return std::max<std::int16_t>(checks, 0);
}

void GuestCodeCache::UpdatePartial() {
  // Thousands of sites are looked at, in 0.1 ms to 2 ms, and other threads wait meanwhile: every
  // 10 ms that was 9% of ocean's time (bench/programs, four threads).
  constexpr std::uint64_t kOften = 10'000'000, kSeldom = 100'000'000, kShare = 100;
  const std::uint64_t now = Nanoseconds(CLOCK_MONOTONIC);
  if (now < update_at_) return;
  const std::lock_guard lock(mutex_);
  if (now < update_at_) return;  // another thread has
  std::vector<std::uint64_t> hot;
  const auto note = [&](std::uint64_t rip) {
    if (hot_.insert(rip).second && !sharing_.contains(rip)) hot.push_back(rip);
  };
  present(Coverage::kFull).TakeHot(note);
  CodeCache& code = present(Coverage::kPartial);
  code.TakeHot(note);
  // No thread need have learned that a site leaves out reads (guest-agent/repeats.cpp, kSoonHot).
  if (!hot_.empty()) __atomic_store_n(&agent::Repeats().leaves_out_reads, 1, __ATOMIC_SEQ_CST);
  constexpr std::size_t kFew = 64;
  if (hot.size() > kFew) {
    code.RemoveAll();
  } else {
    for (const std::uint64_t rip : hot) code.Invalidate(rip, rip + 1);
  }
  const std::uint64_t end = Nanoseconds(CLOCK_MONOTONIC);
  update_at_ = end + std::clamp(kShare * (end - now), kOften, kSeldom);
}

void GuestCodeCache::Reset(CacheThread& thread) {
  // Memory that no thread has used yet stays untouched.
  if (thread.signature[0] != 0) std::memset(thread.filter, 0, sizeof thread.filter);
  thread.next_frame = TRAPLINE_CACHE_THREAD + sizeof(ShadowFrame);
  thread.frames[0] = {};
  thread.leave_requested = 0;
  thread.leave_after = std::numeric_limits<std::int64_t>::max();
  for (std::uint64_t i = 0; i < 8; ++i)
    thread.signature[i] = (8 + i) << CacheThread::kSignatureShift;
}

// The thread's own increments are single instructions without lock prefix: one of the two may be
// lost, which leaves the other.
void GuestCodeCache::EndEpoch(CacheThread& thread) {
  for (std::uint64_t& signature : thread.signature)
    __atomic_fetch_add(&signature, 8ull << CacheThread::kSignatureShift, __ATOMIC_SEQ_CST);
}

std::size_t GuestCodeCache::ReadCode(std::uint64_t address, std::uint8_t* to, std::size_t size) {
  if (agent::Contains(address)) {
    size = std::min(size, TRAPLINE_AGENT_CODE + agent::BlobSize() - address);
    std::memcpy(to, trapline_agent_begin + (address - TRAPLINE_AGENT_CODE), size);
    return size;
  }
  if (rules_.refuses && rules_.refuses(address)) return 0;
  std::size_t done = 0;
  while (done < size) {
    const CodeBlock& block = CodeBlockOf(address + done);
    if (!block.readable) break;
    const std::uint64_t offset = (address + done) % CodeBlock::kSize;
    const std::size_t part = std::min<std::size_t>(size - done, CodeBlock::kSize - offset);
    std::memcpy(to + done, block.bytes.data() + offset, part);
    done += part;
  }
  return done;
}

auto GuestCodeCache::CodeBlockOf(std::uint64_t address) -> const CodeBlock& {
  const std::uint64_t number = address / CodeBlock::kSize;
  const auto [found, is_new] = code_blocks_.try_emplace(number);
  CodeBlock& block = found->second;
  if (!is_new) return block;
  const auto region = space_.Find(address);
  block.tracked = region && region->IsTrackedCode();
  if (!block.tracked) {
    block.counting_parts =
        space_.CountingParts(number * CodeBlock::kSize, (number + 1) * CodeBlock::kSize);
  }
  block.readable = region && region->ReadOnlyCode() &&
                   ReadGuest(number * CodeBlock::kSize, block.bytes.data(), CodeBlock::kSize);
  return block;
}

bool GuestCodeCache::IsOut(std::uint64_t rip, std::uint64_t offset) const {
  if (!Contains(rip)) return false;
  const Coverage coverage = CoverageOf(rip);
  const std::uint64_t at = (rip - CodeOf(coverage)) % HalfSizeOf(coverage);
  // RIP is on the `out` or behind it.
  return at == offset || at == offset + agent::kOutLength;
}

bool GuestCodeCache::IsUsed(Coverage coverage, std::uint64_t generation) {
  bool used = std::any_of(inside_.begin(), inside_.end(), [&](const auto& thread) {
    return thread.second.coverage == coverage && thread.second.generation <= generation;
  });
  if (redirects_ == nullptr || used) return used;
  machine_.ForEachCarrier([&](Carrier& carrier) {
    const std::uint64_t entered =
        __atomic_load_n(&carrier.thread_page().redirect.entered, __ATOMIC_SEQ_CST);
    used = used || (entered != 0 && entered <= generation);
  });
  return used;
}

void GuestCodeCache::DropRedirects() {
  if (redirects_ != nullptr) redirects_->Clear(PresentHalf(Coverage::kFull).generation);
}

void GuestCodeCache::Redirect(std::uint64_t redirect_version, std::uint64_t rip, std::uint64_t rsp,
                              std::uint64_t address, std::span<const CallFrame> frames) {
  const std::lock_guard lock(mutex_);
  redirects_->Add(redirect_version, rip, rsp, address, frames);
}

void GuestCodeCache::OnRedirected(CacheThread& thread, std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  inside_[&thread] = {Coverage::kFull, generation};
  redirects_->CountRedirect();
}

void GuestCodeCache::CountPageFault() {
  if (redirects_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  redirects_->CountFault();
}

// Empties the other half and makes it the present one. False: a thread does not leave it.
bool GuestCodeCache::MakeRoom(std::unique_lock<std::mutex>& lock, Coverage coverage) {
  // Threads inside leave at their next branch; one that has no processor must get one first.
  constexpr unsigned kRounds = 400;
  constexpr auto kRound = std::chrono::microseconds(50);
  const std::uint64_t before = PresentHalf(coverage).generation;
  const unsigned number = 1 - PresentNumber(coverage);
  Half& other = HalfAt(coverage, number);
  for (unsigned round = 0; round < kRounds; ++round) {
    if (!IsUsed(coverage, other.generation)) {
      if (other.cache == nullptr) {
        MakeHalf(coverage, number);
      } else {
        rules_.drain();
        other.cache->Flush();
        other.generation = ++generation_;
      }
      present(coverage).RemoveAll();
      PresentNumber(coverage) = number;
      DropRedirects();
      AdmissionTo(coverage).OnFull(Nanoseconds(CLOCK_MONOTONIC));
      ++flushes_;
      return true;
    }
    lock.unlock();
    std::this_thread::sleep_for(kRound);
    lock.lock();
    if (PresentHalf(coverage).generation != before) return true;  // another thread has made room
  }
  ++refused_;
  return false;
}

std::uint64_t GuestCodeCache::Translate(std::unique_lock<std::mutex>& lock, CacheThread& thread,
                                        Coverage coverage,
                                        const std::function<std::uint64_t()>& translate) {
  inside_.erase(&thread);
  const auto translate_anew = [&] {
    code_blocks_.clear();
    // Where there is no room for what is run, there is none for what only might be: `rustc -O` of
    // forty lines 71 s instead of 115.
    constexpr unsigned kSmallRegion = 32, kAnyRegion = ~0u;
    const bool crowded = AdmissionTo(coverage).threshold() > 1;
    present(coverage).LimitRegions(crowded ? kSmallRegion : kAnyRegion);
    return translate();
  };
  std::uint64_t address = translate_anew();
  if (address == 0 && present(coverage).full() && MakeRoom(lock, coverage))
    address = translate_anew();
  if (address != 0) inside_[&thread] = {coverage, PresentHalf(coverage).generation};
  return address;
}

std::uint64_t GuestCodeCache::Enter(CacheThread& thread, std::uint64_t rip, Coverage coverage) {
  std::unique_lock lock(mutex_);
  return Translate(lock, thread, coverage, [&] { return present(coverage).Translate(rip); });
}

bool GuestCodeCache::Declines(std::uint64_t rip, Coverage coverage) {
  return !agent::Contains(rip) && present(coverage).Find(rip) == 0 &&
         !AdmissionTo(coverage).Admits(rip);
}

void GuestCodeCache::NoteSharing(std::uint64_t rip) {
  const std::lock_guard lock(mutex_);
  if (!space_.IsTrackedCode(rip)) return;
  if (sharing_.insert(rip).second) present(Coverage::kPartial).Invalidate(rip, rip + 1);
}

GuestCodeCache::Continuation GuestCodeCache::Follow(CacheThread& thread, std::uint64_t rip,
                                                    bool may_decline) {
  std::unique_lock lock(mutex_);
  const Coverage coverage = CoverageOf(rip);
  Continuation result;
  const auto translate = [&](const std::function<std::uint64_t()>& translation) {
    result.declined = may_decline && Declines(result.target, coverage);
    if (result.declined) {
      inside_.erase(&thread);
    } else {
      result.address = Translate(lock, thread, coverage, translation);
    }
  };
  switch (static_cast<ExitKind>(thread.exit_kind)) {
    case ExitKind::kLink: {
      const Half& from = HalfOf(rip);
      const std::uint64_t generation = from.generation;
      result.target = from.cache->LinkTarget(thread.exit_argument);
      translate([&] {
        return generation == PresentHalf(coverage).generation
                   ? present(coverage).FollowLink(thread.exit_argument)
                   : present(coverage).Translate(result.target);
      });
      break;
    }
    case ExitKind::kLookup:
      result.target = thread.target;
      if (!IsCanonical(result.target)) {
        result.refused = HalfOf(thread.lookup).cache->BranchOf(thread);
        if (result.refused) {
          inside_.erase(&thread);
          break;
        }
      }
      translate([&] { return present(coverage).FollowLookup(result.target); });
      break;
    default:
      result.target = thread.exit_argument;
      inside_.erase(&thread);
      break;
  }
  return result;
}

void GuestCodeCache::Leave(CacheThread& thread) {
  const std::lock_guard lock(mutex_);
  inside_.erase(&thread);
}

std::optional<GuestCodeCache::Pause> GuestCodeCache::BeginPause(CacheThread& thread,
                                                                std::uint64_t return_address) {
  const std::lock_guard lock(mutex_);
  const Half& half = HalfOf(return_address);
  RegisterFile registers;
  registers.rip = return_address;
  const auto program =
      half.cache != nullptr ? half.cache->Recover(registers, thread) : std::nullopt;
  if (!program) return std::nullopt;
  inside_.erase(&thread);
  return Pause{program->rip, half.generation, CoverageOf(return_address)};
}

bool GuestCodeCache::EndPause(CacheThread& thread, const Pause& pause) {
  const std::lock_guard lock(mutex_);
  if (std::none_of(halves_.begin(), halves_.end(),
                   [&](const Half& half) { return half.generation == pause.generation; })) {
    return false;
  }
  inside_[&thread] = {pause.coverage, pause.generation};
  return true;
}

std::optional<RegisterFile> GuestCodeCache::Recover(const RegisterFile& registers,
                                                    const CacheThread& thread) {
  const std::lock_guard lock(mutex_);
  const Half& half = HalfOf(registers.rip);
  if (half.cache == nullptr) return std::nullopt;
  return half.cache->Recover(registers, thread);
}

void GuestCodeCache::Invalidate(std::span<const Range> ranges) {
  const std::lock_guard lock(mutex_);
  DropRedirects();
  const auto changed = [&](std::uint64_t rip) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const Range& range) { return rip >= range.start && rip < range.end; });
  };
  std::erase_if(sharing_, changed);
  std::erase_if(hot_, changed);
  for (const Half& half : halves_) {
    if (half.cache != nullptr) half.cache->ForgetCold(changed);
  }
  // Of the other half nothing is linked or looked up any more.
  for (const Coverage coverage : {Coverage::kFull, Coverage::kPartial}) {
    if (PresentHalf(coverage).cache == nullptr) continue;
    for (const Range& range : ranges) present(coverage).Invalidate(range.start, range.end);
  }
}

std::size_t GuestCodeCache::sharing() {
  const std::lock_guard lock(mutex_);
  return sharing_.size();
}

CodeCacheStatistics GuestCodeCache::statistics() {
  const std::lock_guard lock(mutex_);
  CodeCacheStatistics result;
  for (const Half& half : halves_) {
    if (half.cache == nullptr) continue;
    const CacheStatistics& part = half.cache->statistics();
    result.translated.regions += part.regions;
    result.translated.blocks += part.blocks;
    result.translated.instructions += part.instructions;
    result.translated.instrumented += part.instrumented;
    result.translated.stepped += part.stepped;
    result.translated.code_bytes += part.code_bytes;
  }
  result.flushes = flushes_;
  result.refused = refused_;
  for (const CacheAdmission& admission : admissions_) result.declined += admission.declined();
  return result;
}

}  // namespace trapline
