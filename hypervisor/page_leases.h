// Leases: a thread that has got many pages at once and uses them natively keeps them to itself for
// a while (docs/detection.md, "Hot code").
#pragma once

#include <cstdint>

#include "hypervisor/address_space.h"
#include "hypervisor/machine.h"

namespace trapline {

// The calling thread, of this carrier, begins to run natively: the lease on the pages that it gets
// begins with it.
void BeginLease(Carrier& carrier);

// The page at `address` may be one that another thread has on lease. Threads that write different
// parts of the same pages would take them from each other with each touch, and spend their time in
// page faults and in the code cache; so who has got many at once keeps them for a while (as in
// distributed shared memory: Mirage, SOSP 1989, time windows). It does not while it waits for
// something, and nobody waits longer in all than it has run.
void AwaitLease(AddressSpace& space, Carrier& carrier, std::uint64_t address);

}  // namespace trapline
