// A four-level x86-64 page table (Intel SDM vol. 3, 4.5) in memory that somebody else provides.
//
// The table knows nothing of KVM. Whoever removes or weakens an entry must make the hypervisor drop
// its cached translation afterwards; adding an entry that was absent needs nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "shadow-pages/address.h"

namespace trapline {

// Where page-table pages come from. Implementations must be safe to call from several threads.
class PageTablePages {
 public:
  virtual ~PageTablePages() = default;
  // A zeroed page. Throws std::bad_alloc when there is none.
  virtual GuestPhysical AllocatePage() = 0;
  virtual void FreePage(GuestPhysical page) = 0;
  // The monitor's own pointer to a page handed out by AllocatePage.
  virtual std::uint64_t* Entries(GuestPhysical page) = 0;
};

// Entry bits as the processor defines them.
struct PageEntry {
  static constexpr std::uint64_t kPresent = 1ull << 0;
  static constexpr std::uint64_t kWritable = 1ull << 1;
  static constexpr std::uint64_t kUser = 1ull << 2;
  static constexpr std::uint64_t kAccessed = 1ull << 5;
  static constexpr std::uint64_t kDirty = 1ull << 6;
  static constexpr std::uint64_t kLarge = 1ull << 7;
  static constexpr std::uint64_t kNoExecute = 1ull << 63;
  static constexpr std::uint64_t kAddress = 0x000ffffffffff000ull;
};

// The smallest range that has all pages of some that have been used.
struct UsedPages {
  std::uint64_t first = ~std::uint64_t{0}, last = 0;  // bytes

  bool any() const { return first <= last; }
  void Add(const UsedPages& other) {
    first = std::min(first, other.first);
    last = std::max(last, other.last);
  }
};

// Entries are written with single 8-byte stores, so a vCPU that walks the table meanwhile sees old
// or new, never a mix. Mutating calls must not overlap each other for one table.
class PageTable {
 public:
  explicit PageTable(PageTablePages& pages);
  ~PageTable();
  PageTable(const PageTable&) = delete;
  PageTable& operator=(const PageTable&) = delete;

  GuestPhysical root() const { return root_; }

  // Maps [address, address + length) to consecutive physical pages; all multiples of 4 KiB. `flags`
  // are PageEntry bits (kPresent is added). Existing entries are replaced.
  void Map(GuestVirtual address, GuestPhysical physical, std::uint64_t length, std::uint64_t flags);

  // Maps one 2 MiB page; address and physical are multiples of 2 MiB. Returns false, and changes
  // nothing, when smaller pages are already mapped there.
  bool MapLarge(GuestVirtual address, GuestPhysical physical, std::uint64_t flags);

  // Makes the range absent. A 2 MiB page that is only partly inside becomes absent as a whole:
  // absent is always safe, the next access faults and maps anew. Returns which pages of the range
  // were marked as accessed: neither the processor nor KVM has a translation of any other (SDM vol.
  // 3, 4.8).
  UsedPages Clear(GuestVirtual address, std::uint64_t length) { return Keep(address, length, 0); }

  // Takes `bits`, of PageEntry::kAccessed and kDirty, off the entries of the range. Returns the
  // same: the processor and KVM must be made to forget these pages, or they will not mark them
  // again.
  UsedPages ForgetUse(GuestVirtual address, std::uint64_t length, std::uint64_t bits) {
    return Keep(address, length, ~bits);
  }

  // The entry that translates `address`, 0 when absent. kLarge tells a 2 MiB entry.
  std::uint64_t Lookup(GuestVirtual address) const;

  // Calls `visit(address, length, entry)` for each present page in [address, address + length).
  void ForEach(GuestVirtual address, std::uint64_t length,
               const std::function<void(GuestVirtual, std::uint64_t, std::uint64_t)>& visit) const;

 private:
  std::uint64_t* Walk(GuestVirtual address, int level, bool create);
  UsedPages Keep(GuestVirtual address, std::uint64_t length, std::uint64_t bits);
  void FreeTree(GuestPhysical page, int level);

  PageTablePages& pages_;
  GuestPhysical root_;
};

}  // namespace trapline
