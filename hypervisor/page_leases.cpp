#include "hypervisor/page_leases.h"

#include <algorithm>
#include <ctime>

#include "hypervisor/clock.h"

namespace trapline {
namespace {

// How long a thread keeps to itself pages that it has got many at once of and uses natively. lu of
// bench/programs, whose threads write halves of the same pages, took 11 s of processor time without
// a lease, 4.2 with 8 ms, 4.2 with 16; with one on all of its pages 8.7 with 0.5 ms, 5.0 with 2,
// 3.7 with 4, 2.9 with 8.
constexpr std::uint64_t kLease = 8'000'000;     // ns
constexpr std::uint64_t kLeaseRound = 100'000;  // ns

std::uint64_t Now() { return Nanoseconds(CLOCK_MONOTONIC); }

}  // namespace

void BeginLease(Carrier& carrier) { carrier.lease_end = Now() + kLease; }

void AwaitLease(AddressSpace& space, Carrier& carrier, std::uint64_t address) {
  if (address >= kUserAddressEnd) return;
  std::uint64_t& waited = carrier.thread_page().counters.lease_time;
  const std::uint64_t before = waited;
  while (waited - before < kLease) {
    const std::uint64_t end = space.LeaseEnd(carrier, {address});
    const std::uint64_t now = end != 0 ? Now() : 0;
    if (now >= end || waited >= ProcessorTime()) return;
    carrier.lease_end = 0;
    const timespec round{0, static_cast<long>(std::min(end - now, kLeaseRound))};
    const bool interrupted = nanosleep(&round, nullptr) != 0;
    waited += Now() - now;
    if (interrupted) return;
  }
}

}  // namespace trapline
