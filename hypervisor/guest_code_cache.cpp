#include "hypervisor/guest_code_cache.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "guest-agent/agent.h"
#include "hypervisor/guest_copy.h"

namespace trapline {
namespace {

static_assert(offsetof(CacheThread, filter) == TRAPLINE_CACHE_FILTER - TRAPLINE_CACHE_THREAD);
static_assert(sizeof(CacheThread::filter[0]) == TRAPLINE_CACHE_FILTER_PLANE);
static_assert(offsetof(CacheThread, program_rsp) ==
              TRAPLINE_CACHE_PROGRAM_RSP - TRAPLINE_CACHE_THREAD);
static_assert(offsetof(CacheThread, signature) == TRAPLINE_CACHE_SIGNATURE - TRAPLINE_CACHE_THREAD);
static_assert(offsetof(CacheThread, next_frame) ==
              TRAPLINE_CACHE_NEXT_FRAME - TRAPLINE_CACHE_THREAD);
static_assert(offsetof(CacheThread, leave_requested) ==
              TRAPLINE_CACHE_LEAVE_REQUESTED - TRAPLINE_CACHE_THREAD);
static_assert(offsetof(CacheThread, leave_after) ==
              TRAPLINE_CACHE_LEAVE_AFTER - TRAPLINE_CACHE_THREAD);
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
static_assert(offsetof(RegisterFile, gpr) == 0 && kRcx * 8 == TRAPLINE_FILE_RCX &&
              kRdx * 8 == TRAPLINE_FILE_RDX && kRsi * 8 == TRAPLINE_FILE_RSI &&
              kRdi * 8 == TRAPLINE_FILE_RDI);
static_assert(TRAPLINE_CACHE_TABLE + CacheMemory::kTableSize <= TRAPLINE_CACHE_SITES);
static_assert(TRAPLINE_CACHE_SITES + CacheMemory::kSitesSize <= TRAPLINE_CACHE_END);

}  // namespace

GuestCodeCache::GuestCodeCache(Machine& machine, AddressSpace& space, bool filter,
                               std::function<bool(std::uint64_t rip)> is_atomic)
    : space_(space) {
  machine.ShowCodeCache();
  TranslatorOptions options;
  options.read_code = [this](std::uint64_t address, std::uint8_t* to, std::size_t size) {
    return ReadCode(address, to, size);
  };
  options.instrument = [this](std::uint64_t rip) {
    // The C library's and the agent's own code is not checked, but reaches memory in the same way.
    return space_.IsTrackedCode(rip) ? Instrument::kCheck : Instrument::kMirror;
  };
  options.is_atomic = std::move(is_atomic);
  options.after_atomic = true;
  options.handler =
      reinterpret_cast<AccessHandler>(agent::GuestAddressOf(trapline_agent_cache_access));
  options.mirror_offset = kMirrorOffset;
  options.report_at = agent::GuestAddressOf(trapline_agent_access_out);
  options.filter = filter;
  options.shadow_stack = true;
  options.code_size = TRAPLINE_CACHE_CODE_SIZE;
  options.memory = {TRAPLINE_CACHE_CODE, TRAPLINE_CACHE_TABLE, TRAPLINE_CACHE_SITES,
                    TRAPLINE_CACHE_THREAD};
  options.exit_port = TRAPLINE_PORT_CACHE;
  cache_ = std::make_unique<CodeCache>(std::move(options));
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
  const auto region = space_.Find(address);
  // What can be written while it can be executed changes without a word.
  if (!region || (region->protection & PROT_EXEC) == 0 || (region->protection & PROT_WRITE) != 0)
    return 0;
  if (ReadGuest(address, to, size)) return size;
  size = std::min<std::size_t>(size, kPageSize - address % kPageSize);
  return ReadGuest(address, to, size) ? size : 0;
}

std::uint64_t GuestCodeCache::Translate(std::uint64_t rip) {
  const std::lock_guard lock(mutex_);
  return cache_->Translate(rip);
}

std::uint64_t GuestCodeCache::FollowLink(std::uint64_t link) {
  const std::lock_guard lock(mutex_);
  return cache_->FollowLink(link);
}

std::uint64_t GuestCodeCache::LinkTarget(std::uint64_t link) {
  const std::lock_guard lock(mutex_);
  return cache_->LinkTarget(link);
}

std::uint64_t GuestCodeCache::FollowLookup(std::uint64_t rip) {
  const std::lock_guard lock(mutex_);
  return cache_->FollowLookup(rip);
}

std::optional<RegisterFile> GuestCodeCache::Recover(const RegisterFile& registers,
                                                    const CacheThread& thread) {
  const std::lock_guard lock(mutex_);
  return cache_->Recover(registers, thread);
}

void GuestCodeCache::Invalidate(std::span<const Range> ranges) {
  const std::lock_guard lock(mutex_);
  for (const Range& range : ranges) cache_->Invalidate(range.start, range.end);
}

}  // namespace trapline
