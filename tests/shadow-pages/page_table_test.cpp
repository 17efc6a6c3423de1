// The page table against a plain map: after each operation the whole mapping is compared, by a walk
// of the test's own, by Lookup and by ForEach.
#include "shadow-pages/page_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace trapline {
namespace {

// Page-table pages in host memory, under invented physical addresses.
class FakePages : public PageTablePages {
 public:
  ~FakePages() override {
    for (const auto& [physical, memory] : pages_) std::free(memory);
  }

  GuestPhysical AllocatePage() override {
    if (pages_.size() >= most_) throw std::bad_alloc();
    void* memory = std::aligned_alloc(kPageSize, kPageSize);
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, kPageSize);
    next_ += kPageSize;
    pages_[next_] = memory;
    return {next_};
  }
  void FreePage(GuestPhysical page) override {
    const auto it = pages_.find(page.value);
    ASSERT_NE(it, pages_.end()) << "freed twice or never handed out: " << page.value;
    std::free(it->second);
    pages_.erase(it);
  }
  std::uint64_t* Entries(GuestPhysical page) override {
    const auto it = pages_.find(page.value);
    if (it == pages_.end()) {
      ADD_FAILURE() << "not a page-table page: " << page.value;
      std::abort();
    }
    return static_cast<std::uint64_t*>(it->second);
  }

  std::size_t in_use() const { return pages_.size(); }
  void set_most(std::size_t most) { most_ = most; }

 private:
  std::map<std::uint64_t, void*> pages_;
  std::uint64_t next_ = 0x7ff000000;
  std::size_t most_ = ~std::size_t{0};
};

struct Page {
  std::uint64_t length;
  std::uint64_t entry;
  bool operator==(const Page&) const = default;
};
using Mapping = std::map<std::uint64_t, Page>;  // page address -> what is mapped there

std::string Text(const Mapping& mapping) {
  std::string text;
  for (const auto& [address, page] : mapping) {
    char line[80];
    std::snprintf(line, sizeof line, "%#llx+%#llx=%#llx ", static_cast<unsigned long long>(address),
                  static_cast<unsigned long long>(page.length),
                  static_cast<unsigned long long>(page.entry));
    text += line;
    if (text.size() > 2000) return text + "...";
  }
  return text;
}

// Reads the tables as the processor does (Intel SDM vol. 3, 4.5.4): every entry of every table.
void ReadTables(FakePages& pages, GuestPhysical table, int level, std::uint64_t base,
                Mapping& mapping, std::set<std::uint64_t>& tables) {
  ASSERT_EQ(table.value % kPageSize, 0u);
  ASSERT_TRUE(tables.insert(table.value).second) << "a table is used twice";
  const std::uint64_t* entries = pages.Entries(table);
  for (std::uint64_t i = 0; i < 512; ++i) {
    const std::uint64_t entry = entries[i];
    if ((entry & PageEntry::kPresent) == 0) {
      ASSERT_EQ(entry, 0u) << "rubbish in an absent entry";
      continue;
    }
    std::uint64_t address = base + (i << (12 + 9 * level));
    if (level == 3 && i >= 256) address |= 0xffff000000000000ull;
    const bool large = level == 1 && (entry & PageEntry::kLarge) != 0;
    if (level == 0 || large) {
      mapping[address] = {large ? kLargePageSize : kPageSize, entry};
      continue;
    }
    // A table must allow what the last level decides about.
    ASSERT_EQ(entry & PageEntry::kLarge, 0u) << "a large page at level " << level;
    ASSERT_NE(entry & PageEntry::kUser, 0u);
    ASSERT_NE(entry & PageEntry::kWritable, 0u);
    ASSERT_EQ(entry & PageEntry::kNoExecute, 0u);
    ReadTables(pages, {entry & PageEntry::kAddress}, level - 1, address, mapping, tables);
  }
}

Mapping VisitedBy(const PageTable& table, std::uint64_t start, std::uint64_t length) {
  Mapping visited;
  std::uint64_t last = 0;
  table.ForEach({start}, length,
                [&](GuestVirtual address, std::uint64_t size, std::uint64_t entry) {
                  EXPECT_TRUE(visited.empty() || address.value > last) << "not ascending";
                  last = address.value;
                  EXPECT_TRUE(visited.try_emplace(address.value, Page{size, entry}).second);
                });
  return visited;
}

// The page table and its model, changed together.
class Twin {
 public:
  Twin() : table_(pages_) {}

  void Map(std::uint64_t address, std::uint64_t physical, std::uint64_t length,
           std::uint64_t flags) {
    table_.Map({address}, {physical}, length, flags);
    for (std::uint64_t at = 0; at < length; at += kPageSize) {
      // A large page gives way to small ones; the rest of it becomes absent.
      EraseLargeAround(address + at);
      model_[address + at] = {kPageSize, (physical + at) | flags | PageEntry::kPresent};
      small_tables_.insert(AlignDown(address + at, kLargePageSize));
    }
  }

  void MapLarge(std::uint64_t address, std::uint64_t physical, std::uint64_t flags) {
    const bool mapped = table_.MapLarge({address}, {physical}, flags);
    const auto first = model_.lower_bound(address);
    const bool small_pages = first != model_.end() && first->first - address < kLargePageSize &&
                             first->second.length == kPageSize;
    if (small_pages) {
      EXPECT_FALSE(mapped) << "a large page over small ones";
    } else if (!small_tables_.contains(address)) {
      EXPECT_TRUE(mapped) << "nothing is mapped there";
    }  // else a table without entries is in the way: either answer is right
    if (!mapped) return;
    small_tables_.erase(address);
    model_[address] = {kLargePageSize, physical | flags | PageEntry::kPresent | PageEntry::kLarge};
  }

  void Clear(std::uint64_t address, std::uint64_t length) {
    UsedPages expected;
    for (const auto& [start, page] : model_) {
      const std::uint64_t first = std::max(start, address);
      const std::uint64_t last = std::min(start + page.length - 1, address + length - 1);
      if (length != 0 && first <= last && (page.entry & PageEntry::kAccessed) != 0)
        expected.Add({first, last});
    }
    const UsedPages used = table_.Clear({address}, length);
    EXPECT_EQ(used.first, expected.first);
    EXPECT_EQ(used.last, expected.last);
    if (length == 0) return;
    EraseLargeAround(address);
    EraseLargeAround(address + length - 1);
    auto it = model_.lower_bound(address);
    while (it != model_.end() && it->first - address < length) it = model_.erase(it);
  }

  // Everything there is, read in three ways.
  void Compare(const std::vector<std::uint64_t>& probes) {
    Mapping read;
    std::set<std::uint64_t> tables;
    ReadTables(pages_, table_.root(), 3, 0, read, tables);
    ASSERT_TRUE(read == model_) << "table: " << Text(read) << "\nmodel: " << Text(model_);
    ASSERT_EQ(tables.size(), pages_.in_use()) << "a table is not reachable from the root";
    Mapping visited = VisitedBy(table_, 0, 1ull << 47);
    visited.merge(VisitedBy(table_, 0xffff800000000000ull, 0x7fffffffffffull));
    ASSERT_TRUE(visited == model_) << "visited: " << Text(visited) << "\nmodel: " << Text(model_);
    for (const auto& [address, page] : model_) {
      ASSERT_EQ(table_.Lookup({address}), page.entry);
      ASSERT_EQ(table_.Lookup({address + page.length - 1}), page.entry);
      ASSERT_EQ(page.entry & PageEntry::kAddress & (page.length - 1), 0u) << "misaligned entry";
    }
    for (const std::uint64_t probe : probes) ASSERT_EQ(table_.Lookup({probe}), Expected(probe));
  }

  // ForEach over a part must visit the pages that overlap it and no others.
  void ComparePart(std::uint64_t start, std::uint64_t length) {
    Mapping expected;
    for (const auto& [address, page] : model_) {
      if (address < start + length && start < address + page.length) expected[address] = page;
    }
    const Mapping visited = VisitedBy(table_, start, length);
    ASSERT_TRUE(visited == expected)
        << "visited: " << Text(visited) << "\nmodel: " << Text(expected);
  }

  std::size_t pages() const { return model_.size(); }
  PageTable& table() { return table_; }
  FakePages& memory() { return pages_; }

 private:
  void EraseLargeAround(std::uint64_t address) {
    const auto it = model_.find(AlignDown(address, kLargePageSize));
    if (it != model_.end() && it->second.length == kLargePageSize) model_.erase(it);
  }
  std::uint64_t Expected(std::uint64_t address) const {
    auto it = model_.upper_bound(address);
    if (it == model_.begin()) return 0;
    --it;
    return address - it->first < it->second.length ? it->second.entry : 0;
  }

  FakePages pages_;
  PageTable table_;
  Mapping model_;
  std::set<std::uint64_t> small_tables_;  // 2 MiB blocks that have had small pages
};

constexpr std::uint64_t kLowerEnd = 1ull << 47;
constexpr std::uint64_t kUpper = 0xffffff0000000000ull;
constexpr std::uint64_t kData =
    PageEntry::kUser | PageEntry::kWritable | PageEntry::kNoExecute | PageEntry::kAccessed;
constexpr std::uint64_t kCode = PageEntry::kUser;

TEST(PageTable, EmptyTableMapsNothing) {
  Twin twin;
  twin.Compare({0, 0x1000, kLowerEnd - 1, kUpper, ~0ull});
  EXPECT_EQ(twin.memory().in_use(), 1u);
}

TEST(PageTable, TheLastPageOfAll) {
  Twin twin;
  const std::uint64_t last = 0 - kPageSize;
  twin.Map(last, 0x123000, kPageSize, kData);
  twin.Clear(last, kPageSize);
  EXPECT_EQ(twin.pages(), 0u);
  twin.Compare({last});
}

TEST(PageTable, EdgeAddresses) {
  for (const std::uint64_t address :
       {std::uint64_t{0}, kLowerEnd - kPageSize, std::uint64_t{0xffff800000000000}, kUpper,
        0 - 2 * kPageSize}) {
    SCOPED_TRACE(address);
    Twin twin;
    twin.Map(address, 0x123000, kPageSize, kData);
    twin.Compare({address - 1, address, address + kPageSize - 1, address + kPageSize});
    twin.Clear(address, kPageSize);
    EXPECT_EQ(twin.pages(), 0u);
    twin.Compare({address});
  }
  Twin twin;
  twin.MapLarge(0, 0, kCode);
  twin.MapLarge(kLowerEnd - kLargePageSize, 0xffffffe00000, kData);
  twin.MapLarge(kUpper, 4ull << 30, kData);
  twin.Compare({0, kLargePageSize - 1, kLargePageSize, kLowerEnd - 1, kUpper + 0x1ff000});
  twin.Clear(0, kLowerEnd);  // the whole lower half
  twin.Compare({0, kUpper});
  EXPECT_EQ(twin.pages(), 1u);
}

TEST(PageTable, RangesAcrossTablesOfEveryLevel) {
  for (const int level : {1, 2, 3}) {
    const std::uint64_t border = 1ull << (12 + 9 * level);
    SCOPED_TRACE(level);
    Twin twin;
    twin.Map(border - 3 * kPageSize, 0x40000000, 6 * kPageSize, kData);
    twin.Compare({border - 1, border});
    twin.Clear(border - kPageSize, 2 * kPageSize);
    twin.Compare({border - kPageSize, border, border + kPageSize});
    EXPECT_EQ(twin.pages(), 4u);
  }
}

TEST(PageTable, PartlyClearedLargePageBecomesAbsentAsAWhole) {
  constexpr std::uint64_t kAt = 0x7f0000200000;
  struct Part {
    std::uint64_t start, length;
  };
  for (const Part part :
       {Part{kAt, kPageSize}, Part{kAt + kLargePageSize - kPageSize, kPageSize},
        Part{kAt + 0x10000, 0x3000}, Part{kAt - 0x5000, 0x6000}, Part{kAt + 0x1ff000, 0x5000}}) {
    Twin twin;
    twin.MapLarge(kAt - kLargePageSize, 0x40000000, kData);
    twin.MapLarge(kAt, 0x40200000, kData);
    twin.MapLarge(kAt + kLargePageSize, 0x40400000, kCode);
    twin.Clear(part.start, part.length);
    EXPECT_EQ(twin.table().Lookup({kAt}), 0u);
    twin.Compare({kAt, kAt + kLargePageSize, kAt - 1});
  }
}

TEST(PageTable, SmallPagesReplaceALargeOne) {
  constexpr std::uint64_t kAt = 0x10000000000;
  Twin twin;
  twin.MapLarge(kAt, 0x40200000, kData);
  twin.Map(kAt + 5 * kPageSize, 0x40205000, 2 * kPageSize, kCode);
  EXPECT_EQ(twin.pages(), 2u);
  twin.Compare({kAt, kAt + 4 * kPageSize, kAt + 5 * kPageSize, kAt + 7 * kPageSize});
  EXPECT_FALSE(twin.table().MapLarge({kAt}, {0x40200000}, kData));
  twin.Compare({kAt});
}

TEST(PageTable, LargePageReplacesALargeOne) {
  Twin twin;
  twin.MapLarge(kLargePageSize, 0x40200000, kData);
  twin.MapLarge(kLargePageSize, 0x40400000, kCode);
  EXPECT_EQ(twin.pages(), 1u);
  twin.Compare({kLargePageSize});
}

TEST(PageTable, EmptyRangesChangeNothing) {
  Twin twin;
  twin.Map(0x5000, 0x1000, kPageSize, kData);
  twin.MapLarge(kLargePageSize, kLargePageSize, kData);
  twin.Map(0x6000, 0x1000, 0, kData);
  twin.Clear(0x5000, 0);
  twin.Clear(kLargePageSize, 0);
  twin.ComparePart(0x5000, 0);
  EXPECT_EQ(twin.pages(), 2u);
  twin.Compare({0x5000, 0x6000});
}

// Clearing a huge reservation costs what is mapped in it: no tables are made for it, and it takes
// no time a test would notice.
TEST(PageTable, ClearingNothingAllocatesNothing) {
  Twin twin;
  twin.Map(kLowerEnd - kPageSize, 0x1000, kPageSize, kData);
  const std::size_t before = twin.memory().in_use();
  for (int i = 0; i < 1000; ++i) twin.Clear(0, kLowerEnd - kPageSize);
  EXPECT_EQ(twin.memory().in_use(), before);
  twin.Compare({kLowerEnd - 1});
}

TEST(PageTable, OutOfPagesIsBadAllocAndLeavesTheRest) {
  Twin twin;
  twin.Map(0x5000, 0x1000, kPageSize, kData);
  twin.memory().set_most(twin.memory().in_use() + 1);
  EXPECT_THROW(twin.table().Map({1ull << 46}, {0x1000}, kPageSize, kData), std::bad_alloc);
  EXPECT_EQ(twin.table().Lookup({1ull << 46}), 0u);
  EXPECT_EQ(twin.table().Lookup({0x5000}), 0x1000 | kData | PageEntry::kPresent);
  // What the failed call had taken belongs to the table and is given back with it.
  twin.Compare({0x5000, 1ull << 46});
}

TEST(PageTable, DestructionGivesAllPagesBack) {
  FakePages pages;
  {
    PageTable table(pages);
    std::mt19937_64 random(7);
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t at = AlignDown(random() % kLowerEnd, kLargePageSize);
      if (i % 3 == 0) {
        table.MapLarge({at}, {0x40000000}, kData);
      } else {
        table.Map({at}, {0x40000000}, 3 * kPageSize, kData);
      }
      if (i % 5 == 0) table.Clear({at}, kPageSize);
    }
    table.Map({kUpper}, {0x5000}, kPageSize, kData);
    EXPECT_GT(pages.in_use(), 200u);
  }
  EXPECT_EQ(pages.in_use(), 0u);
}

class PageTableRandom : public ::testing::TestWithParam<unsigned> {};

TEST_P(PageTableRandom, AgreesWithTheModel) {
  std::mt19937_64 random(GetParam());
  // A few neighbourhoods, so that operations meet each other: each spans several 2 MiB blocks and
  // all but the first straddle a border between upper-level tables or an end of the address space.
  const std::uint64_t span = 4 * kLargePageSize;
  const std::vector<std::uint64_t> bases = {0, (1ull << 30) - span / 2, (1ull << 39) - span / 2,
                                            kLowerEnd - span, kUpper};
  const auto pick = [&](std::uint64_t limit) { return random() % limit; };
  const std::uint64_t flag_sets[] = {kData, kCode, PageEntry::kUser | PageEntry::kWritable,
                                     PageEntry::kWritable | PageEntry::kNoExecute};
  Twin twin;
  for (int step = 0; step < 120; ++step) {
    const std::uint64_t base = bases[pick(bases.size())];
    // Mostly a few pages, sometimes hundreds.
    const std::uint64_t most = pick(4) == 0 ? span / kPageSize : 16;
    std::uint64_t first = pick(span / kPageSize);
    if (pick(3) == 0) first = AlignDown(first, 512);
    const std::uint64_t length = std::min((1 + pick(most)) * kPageSize, span - first * kPageSize);
    const std::uint64_t address = base + first * kPageSize;
    const std::uint64_t flags = flag_sets[pick(std::size(flag_sets))];
    const std::uint64_t physical = pick(1ull << 27) * kPageSize;
    SCOPED_TRACE(step);
    switch (pick(8)) {
      case 0:
      case 1:
        twin.Map(address, physical, length, flags);
        break;
      case 2:
      case 3:
      case 4:
        twin.MapLarge(base + pick(4) * kLargePageSize, AlignDown(physical, kLargePageSize), flags);
        break;
      case 5:
        twin.Clear(base + pick(4) * kLargePageSize, kLargePageSize);
        break;
      default:
        twin.Clear(address, length);
    }
    std::vector<std::uint64_t> probes;
    for (int i = 0; i < 20; ++i) probes.push_back(bases[pick(bases.size())] + pick(span));
    twin.Compare(probes);
    twin.ComparePart(address, length);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PageTableRandom, ::testing::Range(1u, 21u));

}  // namespace
}  // namespace trapline
