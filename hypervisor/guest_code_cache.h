// The code cache (translator/code_cache.h) as the guest runs it: in memory that the monitor and all
// threads have at the same addresses, below 2 GiB, executable in View::kClosed.
//
// Thread-safe. Takes AddressSpace's mutex while it holds its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "guest-agent/layout.h"
#include "hypervisor/address_space.h"
#include "translator/code_cache.h"

namespace trapline {

class GuestCodeCache {
 public:
  // `filter`: accesses that a thread has made before in its epoch need not be told of.
  // `is_atomic`: whether debug info calls the plain load or store at an address atomic. Throws
  // KvmError when the memory cannot be had.
  GuestCodeCache(Machine& machine, AddressSpace& space, bool filter,
                 std::function<bool(std::uint64_t rip)> is_atomic);

  // Of a carrier's thread.
  static CacheThread& ThreadOf(Carrier& carrier) {
    return *static_cast<CacheThread*>(carrier.ThreadRegion(TRAPLINE_CACHE_THREAD));
  }
  // Makes the thread's part ready for a new thread.
  static void Reset(CacheThread& thread);
  // What the filter has seen need not hold any longer. The thread may be running.
  static void EndEpoch(CacheThread& thread);

  // Whether `rip` is in the cache; its stubs too.
  bool Contains(std::uint64_t rip) const { return cache_->Contains(rip); }
  std::uint64_t exit_address() const { return cache_->exit_address(); }
  std::uint64_t leave_address() const { return cache_->leave_address(); }

  // As CodeCache's. 0: not to be run from the cache; step it, or let it run natively.
  std::uint64_t Translate(std::uint64_t rip);
  std::uint64_t FollowLink(std::uint64_t link);
  std::uint64_t LinkTarget(std::uint64_t link);
  std::uint64_t FollowLookup(std::uint64_t rip);
  std::optional<RegisterFile> Recover(const RegisterFile& registers, const CacheThread& thread);
  void Invalidate(std::span<const Range> ranges);

  std::mutex& mutex() { return mutex_; }  // held across fork

 private:
  std::size_t ReadCode(std::uint64_t address, std::uint8_t* to, std::size_t size);

  AddressSpace& space_;
  std::mutex mutex_;
  std::unique_ptr<CodeCache> cache_;
};

}  // namespace trapline
