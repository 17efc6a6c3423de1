// Guest-physical memory: which host memory the guest can see, and where.
//
// Guest-physical addresses, given out compactly because some processors have 39 bits:
//   4 GiB ...            system memory: page tables, thread pages, descriptor tables, agent code
//   after it, upwards    windows onto the monitor's own address space, made when the program first
//   touches one
// A window shows a whole aligned block of host addresses, mapped or not; KVM looks at what is there
// only when the guest touches it, and the mmu notifier drops what changes. So a guest-virtual
// address keeps one guest-physical address for ever, and windows are never removed.
//
// Thread-safe: new carriers and page faults allocate at the same time.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "hypervisor/kvm.h"
#include "shadow-pages/page_table.h"

namespace trapline {

// The first address above every user mapping of a 48-bit process.
inline constexpr std::uint64_t kUserAddressEnd = 0x7ffffffff000ull;

class GuestMemory : public PageTablePages {
 public:
  // `physical_bits`: width of the guest's physical addresses; `max_slots`: the host's slot limit.
  GuestMemory(Vm& vm, unsigned physical_bits, unsigned max_slots);
  ~GuestMemory() override;
  GuestMemory(const GuestMemory&) = delete;
  GuestMemory& operator=(const GuestMemory&) = delete;

  // PageTablePages. Freed pages are reused only in a child after fork (AdoptVm): on a shadow-paging
  // host a page that has been a page table may still be cached as the table it was.
  GuestPhysical AllocatePage() override { return AllocatePages(1); }
  void FreePage(GuestPhysical page) override;
  std::uint64_t* Entries(GuestPhysical page) override {
    return static_cast<std::uint64_t*>(HostPointer(page));
  }

  // `count` zeroed pages in a row. Throws std::bad_alloc.
  GuestPhysical AllocatePages(unsigned count);
  // The monitor's pointer to system memory.
  void* HostPointer(GuestPhysical system_address);

  // Guest-physical address of a user address, adding the window when there is none yet.
  // `mapping_start/end`: the mapping around it, which decides how large a new window is. Throws
  // KvmError.
  GuestPhysical PhysicalOf(GuestVirtual address, std::uint64_t mapping_start,
                           std::uint64_t mapping_end);
  // The user address a window shows at `physical`, if any.
  std::optional<GuestVirtual> VirtualOf(GuestPhysical physical) const;

  std::mutex& mutex() { return mutex_; }  // held across fork

  // Child after fork: shows everything to a new VM at the same places.
  void AdoptVm(Vm& vm);

  std::size_t slots_used() const { return slots_.size(); }
  std::uint64_t system_bytes() const { return system_used_; }

 private:
  struct Slot {
    GuestPhysical physical;
    std::uint64_t host;
    std::uint64_t size;
  };
  // All under mutex_.
  void AddSlot(GuestPhysical physical, std::uint64_t host, std::uint64_t size);

  mutable std::mutex mutex_;
  Vm* vm_;
  std::uint64_t physical_end_;
  unsigned max_slots_;
  char* system_ = nullptr;          // reservation for system memory
  std::uint64_t system_size_ = 0;   // bytes reserved
  std::uint64_t system_shown_ = 0;  // bytes the guest can see
  std::uint64_t system_used_ = 0;
  std::uint64_t next_window_;                     // guest-physical
  std::map<std::uint64_t, std::size_t> windows_;  // host start -> index in slots_
  std::vector<Slot> slots_;             // index = KVM slot number; ascending guest-physical windows
  std::vector<GuestPhysical> retired_;  // freed page-table pages, not reusable under this VM
  std::vector<GuestPhysical> free_;
};

}  // namespace trapline
