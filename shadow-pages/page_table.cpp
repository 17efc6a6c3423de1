#include "shadow-pages/page_table.h"

#include <algorithm>

namespace trapline {
namespace {

constexpr int kRootLevel = 3;
constexpr unsigned kEntriesPerTable = 512;

constexpr int LevelShift(int level) { return 12 + 9 * level; }
constexpr std::uint64_t LevelSize(int level) { return 1ull << LevelShift(level); }
constexpr unsigned Index(GuestVirtual address, int level) {
  return (address.value >> LevelShift(level)) & (kEntriesPerTable - 1);
}

std::uint64_t Load(const std::uint64_t& entry) { return __atomic_load_n(&entry, __ATOMIC_ACQUIRE); }
void Store(std::uint64_t& entry, std::uint64_t value) {
  __atomic_store_n(&entry, value, __ATOMIC_RELEASE);
}

// Upper-level entries allow everything; the last level decides.
constexpr std::uint64_t kTableFlags =
    PageEntry::kPresent | PageEntry::kWritable | PageEntry::kUser | PageEntry::kAccessed;

}  // namespace

PageTable::PageTable(PageTablePages& pages) : pages_(pages), root_(pages.AllocatePage()) {}

PageTable::~PageTable() { FreeTree(root_, kRootLevel); }

void PageTable::FreeTree(GuestPhysical page, int level) {
  if (level > 0) {
    const std::uint64_t* table = pages_.Entries(page);
    for (unsigned i = 0; i < kEntriesPerTable; ++i) {
      const std::uint64_t entry = table[i];
      if ((entry & PageEntry::kPresent) != 0 && (entry & PageEntry::kLarge) == 0) {
        FreeTree({entry & PageEntry::kAddress}, level - 1);
      }
    }
  }
  pages_.FreePage(page);
}

// The entry for `address` in the table of `level`, nullptr when a table above is absent (and not
// created) or a large page covers the address.
std::uint64_t* PageTable::Walk(GuestVirtual address, int level, bool create) {
  std::uint64_t* table = pages_.Entries(root_);
  for (int at = kRootLevel; at > level; --at) {
    std::uint64_t& entry = table[Index(address, at)];
    std::uint64_t value = Load(entry);
    if ((value & PageEntry::kLarge) != 0 && (value & PageEntry::kPresent) != 0) {
      if (!create) return nullptr;
      value = 0;  // replaced by a table of smaller pages; the others of its pages become absent
    }
    if ((value & PageEntry::kPresent) == 0) {
      if (!create) return nullptr;
      value = pages_.AllocatePage().value | kTableFlags;
      Store(entry, value);
    }
    table = pages_.Entries({value & PageEntry::kAddress});
  }
  return &table[Index(address, level)];
}

void PageTable::Map(GuestVirtual address, GuestPhysical physical, std::uint64_t length,
                    std::uint64_t flags) {
  std::uint64_t done = 0;
  while (done < length) {
    std::uint64_t* entry = Walk(address + done, 0, true);
    const unsigned first = Index(address + done, 0);
    const std::uint64_t count =
        std::min<std::uint64_t>(kEntriesPerTable - first, (length - done) / kPageSize);
    for (std::uint64_t i = 0; i < count; ++i) {
      Store(entry[i], (physical.value + done) | flags | PageEntry::kPresent);
      done += kPageSize;
    }
  }
}

bool PageTable::MapLarge(GuestVirtual address, GuestPhysical physical, std::uint64_t flags) {
  std::uint64_t* entry = Walk(address, 1, true);
  const std::uint64_t old = Load(*entry);
  if ((old & PageEntry::kPresent) != 0 && (old & PageEntry::kLarge) == 0) return false;
  Store(*entry, physical.value | flags | PageEntry::kPresent | PageEntry::kLarge);
  return true;
}

// Leaves of the entries in the range these bits. Returns which pages were marked as accessed.
UsedPages PageTable::Keep(GuestVirtual address, std::uint64_t length, std::uint64_t bits) {
  UsedPages used;
  std::uint64_t* root = pages_.Entries(root_);
  for (GuestVirtual at = address; at - address < length;) {
    // Skip absent sub-trees whole, so that a huge reservation costs what is mapped in it.
    std::uint64_t* table = root;
    int level = kRootLevel;
    std::uint64_t* entry = nullptr;
    for (;; --level) {
      entry = &table[Index(at, level)];
      const std::uint64_t value = Load(*entry);
      if ((value & PageEntry::kPresent) == 0 || level == 0 || (value & PageEntry::kLarge) != 0)
        break;
      table = pages_.Entries({value & PageEntry::kAddress});
    }
    const std::uint64_t next = AlignDown(at.value, LevelSize(level)) + LevelSize(level);
    // A vCPU may be marking it right now.
    if (Load(*entry) != 0 &&
        (__atomic_fetch_and(entry, bits, __ATOMIC_SEQ_CST) & PageEntry::kAccessed) != 0) {
      used.Add({at.value, std::min(next - 1, address.value + length - 1)});
    }
    if (next <= at.value) break;  // the top of the address space
    at = {next};
  }
  return used;
}

std::uint64_t PageTable::Lookup(GuestVirtual address) const {
  std::uint64_t* table = pages_.Entries(root_);
  for (int level = kRootLevel;; --level) {
    const std::uint64_t value = Load(table[Index(address, level)]);
    if ((value & PageEntry::kPresent) == 0) return 0;
    if (level == 0 || (value & PageEntry::kLarge) != 0) return value;
    table = pages_.Entries({value & PageEntry::kAddress});
  }
}

void PageTable::ForEach(
    GuestVirtual address, std::uint64_t length,
    const std::function<void(GuestVirtual, std::uint64_t, std::uint64_t)>& visit) const {
  const std::uint64_t end = address.value + length;
  for (std::uint64_t at = address.value; at < end;) {
    std::uint64_t* table = pages_.Entries(root_);
    int level = kRootLevel;
    std::uint64_t value = 0;
    for (;; --level) {
      value = Load(table[Index({at}, level)]);
      if ((value & PageEntry::kPresent) == 0 || level == 0 || (value & PageEntry::kLarge) != 0)
        break;
      table = pages_.Entries({value & PageEntry::kAddress});
    }
    const std::uint64_t start = AlignDown(at, LevelSize(level));
    if ((value & PageEntry::kPresent) != 0) visit({start}, LevelSize(level), value);
    const std::uint64_t next = start + LevelSize(level);
    if (next <= at) break;
    at = next;
  }
}

}  // namespace trapline
