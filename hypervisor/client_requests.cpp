#include "hypervisor/client_requests.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "guest-agent/events.h"
#include "hypervisor/guest_copy.h"
#include "shadow-pages/address.h"

namespace trapline {
namespace {

// rol $3,%rdi; rol $13,%rdi; rol $61,%rdi; rol $51,%rdi
constexpr std::array<unsigned char, 16> kPreamble = {
    0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7, 0x0d, 0x48, 0xc1, 0xc7, 0x3d, 0x48, 0xc1, 0xc7, 0x33};
constexpr std::array<unsigned char, 3> kRequest = {0x48, 0x87, 0xdb};  // xchg %rbx,%rbx
constexpr std::array<unsigned char, 3> kArmed = {0xcc, 0x90, 0x90};    // int3; nop; nop
constexpr std::size_t kLength = kPreamble.size() + kRequest.size();

// The first word of a request: which one it is (helgrind.h, drd.h).
enum RequestCode : std::uint64_t {
  kCleanMemory = 0x48470000,
  kMutexDestroyed = 0x48470104,
  kMutexUnlocks = 0x48470105,
  kMutexLocked = 0x48470108,
  kRwlockDestroyed = 0x4847010f,
  kRwlockAcquired = 0x48470111,
  kRwlockReleases = 0x48470112,
  kSemaphorePosts = 0x48470116,
  kSemaphoreWaited = 0x48470117,
  kHappensBefore = 0x48470121,
  kHappensAfter = 0x48470122,
  kDisableChecking = 0x48470127,
  kEnableChecking = 0x48470128,
  kIgnoreRange = 0x44520002,
  kStopIgnoringRange = 0x44520003,
  kRecordReads = 0x44520006,
  kRecordWrites = 0x44520007,
  kThreadName = 0x44520008,
  kDrdSemaphoreWaited = 0x4452000d,
  kDrdSemaphorePosts = 0x4452000e,
};

void Arm(std::uint64_t request, int protection) {
  const std::uint64_t first = AlignDown(request, kPageSize);
  const std::uint64_t last = AlignUp(request + kArmed.size(), kPageSize);
  void* const pages = reinterpret_cast<void*>(first);
  if (mprotect(pages, last - first, PROT_READ | PROT_WRITE) != 0) return;
  WriteGuest(request, kArmed.data(), kArmed.size());
  mprotect(pages, last - first, protection);
}

}  // namespace

void ArmClientRequests(std::uint64_t start, std::uint64_t end, int protection) {
  constexpr std::uint64_t kPiece = 1 << 20;
  std::array<unsigned char, kLength> sequence;
  std::copy(kRequest.begin(), kRequest.end(),
            std::copy(kPreamble.begin(), kPreamble.end(), sequence.begin()));
  std::vector<unsigned char> code(std::min(end - start, kPiece));
  for (std::uint64_t at = start; at + kLength <= end;) {
    std::uint64_t size = std::min<std::uint64_t>(end - at, code.size());
    // A mapping may be longer than its file.
    if (!ReadGuest(at, code.data(), size)) {
      size = std::min(size, kPageSize - at % kPageSize);
      if (!ReadGuest(at, code.data(), size)) return;
    }
    const unsigned char* from = code.data();
    const unsigned char* const to = code.data() + size;
    while (const void* const found = memmem(from, static_cast<std::size_t>(to - from),
                                            sequence.data(), sequence.size())) {
      from = static_cast<const unsigned char*>(found) + kLength;
      Arm(at + static_cast<std::uint64_t>(from - code.data()) - kRequest.size(), protection);
    }
    // A sequence may lie across the border of two pieces.
    at += size < end - at && size >= kLength ? size - (kLength - 1) : size;
  }
}

bool IsClientRequest(std::uint64_t rip) {
  std::array<unsigned char, kLength> code;
  const std::uint64_t start = rip - 1 - kPreamble.size();
  return ReadGuest(start, code.data(), code.size()) &&
         std::equal(kPreamble.begin(), kPreamble.end(), code.begin()) &&
         std::equal(kArmed.begin(), kArmed.end(), code.begin() + kPreamble.size());
}

void ClientRequests::Handle(std::uint64_t words, const Sink& sink) {
  std::array<std::uint64_t, 3> request{};
  if (!ReadGuest(words, request.data(), sizeof request)) return;
  const auto [code, object, second] = request;
  const std::uint64_t annotated = TRAPLINE_LOCK_ANNOTATED;
  switch (code) {
    case kCleanMemory:
      sink(TRAPLINE_CLEAR_HISTORY, object, second);
      break;
    case kMutexLocked:
      sink(TRAPLINE_ACQUIRE, object, annotated);
      break;
    case kMutexUnlocks:
      sink(TRAPLINE_RELEASE, object, annotated);
      break;
    case kRwlockAcquired:
      if (second == 1) written_.push_back(object);
      sink(second == 1 ? TRAPLINE_ACQUIRE : TRAPLINE_ACQUIRE_SHARED, object, annotated);
      break;
    case kRwlockReleases: {
      // Helgrind's request does not say which side.
      const auto held = std::find(written_.begin(), written_.end(), object);
      const bool written = held != written_.end();
      if (written) written_.erase(held);
      sink(written ? TRAPLINE_RELEASE : TRAPLINE_RELEASE_SHARED, object, annotated);
      break;
    }
    case kMutexDestroyed:
    case kRwlockDestroyed:
      sink(TRAPLINE_SYNC_DESTROYED, object, 0);
      break;
    case kSemaphorePosts:
    case kDrdSemaphorePosts:
    case kHappensBefore:
      sink(TRAPLINE_HAPPENS_BEFORE, object, 0);
      break;
    case kSemaphoreWaited:
    case kDrdSemaphoreWaited:
    case kHappensAfter:
      sink(TRAPLINE_HAPPENS_AFTER, object, 0);
      break;
    case kDisableChecking:
      sink(TRAPLINE_UNTRACK, object, second);
      break;
    case kIgnoreRange:
      sink(TRAPLINE_BENIGN_RACE, object, second);
      break;
    case kEnableChecking:
    case kStopIgnoringRange:
      sink(TRAPLINE_TRACK, object, second);
      break;
    case kRecordReads:
    case kRecordWrites:
      sink(object == 0 ? TRAPLINE_IGNORE_BEGIN : TRAPLINE_IGNORE_END, 0,
           code == kRecordReads ? 1 : 2);
      break;
    case kThreadName:
      sink(TRAPLINE_THREAD_NAME, object, 0);
      break;
    default:
      break;
  }
}

}  // namespace trapline
