// Byte-exact shadow memory: what a detector remembers about every byte of the program's memory.
//
// A cell stands for all bytes that so far were always accessed together: a whole 8-byte word, half
// of one, or a single byte. An access that cuts a cell splits it first, and both parts keep the
// full history. So two accesses meet in a cell exactly when their bytes overlap, nothing is ever
// evicted, and the usual aligned 4- and 8-byte accesses touch one cell each.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "detector/slab_pool.h"

namespace trapline {

// Cell: default-constructed = no history; copyable. If it has bool HasHistoryOf(const Cell&) const,
// cells that were cut and have the same history again are merged. Addresses and sizes are bytes;
// address + size must stay below 2^64 - 4096. Not thread-safe.
template <class Cell>
class ShadowMemory {
 public:
  ShadowMemory() = default;
  ShadowMemory(const ShadowMemory&) = delete;
  ShadowMemory& operator=(const ShadowMemory&) = delete;
  ~ShadowMemory() {
    for (const auto& [number, region] : regions_) {
      for (Page* const page : region->pages) {
        if (page != nullptr) DeletePage(page);
      }
    }
  }

  // Calls visit(cell, address, size) for the cells that make up exactly [address, address+size), in
  // ascending order, making them where there are none.
  template <class Visit>
  void ForEach(std::uint64_t address, std::uint64_t size, Visit&& visit) {
    const unsigned offset = address % kWordSize;
    if (offset + size <= kWordSize) [[likely]] {
      VisitWord(PlaceFor(address), address - offset, offset, offset + static_cast<unsigned>(size),
                visit);
      return;
    }
    ForEachWord(address, address + size, [&](std::uint64_t word, unsigned low, unsigned high) {
      VisitWord(PlaceFor(word), word, low, high, visit);
    });
  }

  // The cell that makes up exactly [address, address+size), if there is one already; the quick way
  // for most accesses.
  [[gnu::always_inline]] Cell* FindExact(std::uint64_t address, std::uint64_t size) {
    const std::uint64_t region_number = address / kRegionSize;
    const CachedRegion& cached = cache_[CacheSlot(region_number)];
    if (cached.number != region_number || cached.region == nullptr) [[unlikely]]
      return nullptr;
    Page* const page = cached.region->pages[address % kRegionSize / kPageSize];
    if (page == nullptr) [[unlikely]]
      return nullptr;
    Line* const line = page->lines[address % kPageSize / kLineSize];
    if (line == nullptr) [[unlikely]]
      return nullptr;
    const Layout layout = page->layout[address % kPageSize / kWordSize];
    const bool exact = (layout == kWhole && size == 8 && address % 8 == 0) ||
                       (layout == kHalves && size == 4 && address % 4 == 0);
    if (exact) [[likely]]
      return &line->cells[address % kLineSize / 4];
    if (layout == kBytes && size == 1) return &line->bytes[address % kLineSize / 8][address % 8];
    return nullptr;
  }

  // Calls visit(cell, address, size) for all cells with some byte in [address, address+size);
  // address and size are the overlap. Makes and splits nothing.
  template <class Visit>
  void ForEachExisting(std::uint64_t address, std::uint64_t size, Visit&& visit) {
    const std::uint64_t end = address + size;
    ForEachPage(address, end, [&](std::uint64_t base, Page& page) {
      for (unsigned l = 0; l < kLinesPerPage; ++l) {
        const std::uint64_t line = base + l * kLineSize;
        if (page.lines[l] == nullptr || line + kLineSize <= address || line >= end) continue;
        ForEachWord(std::max(address, line), std::min(end, line + kLineSize),
                    [&](std::uint64_t word, unsigned low, unsigned high) {
                      PeekWord(PlaceIn(page, word), word, low, high, visit);
                    });
      }
    });
  }

  // [address, address+size) has no history any more. Takes time in proportion to the memory that
  // has one, as does Copy.
  void Clear(std::uint64_t address, std::uint64_t size) {
    const std::uint64_t end = address + size;
    std::vector<std::uint64_t> emptied;
    ForEachPage(address, end, [&](std::uint64_t base, Page& page) {
      if (address <= base && end - base >= kPageSize) {
        emptied.push_back(base);
      } else {
        ClearInPage(page, base, address, end);
      }
    });
    for (const std::uint64_t base : emptied) ErasePage(base);
  }

  // The history of [source, source+size) becomes that of [destination, destination+size) too; the
  // ranges may overlap.
  void Copy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
    struct Piece {
      std::uint64_t offset, size;
      Cell cell;
    };
    std::vector<Piece> pieces;
    ForEachExisting(source, size, [&](Cell& cell, std::uint64_t address, std::uint64_t length) {
      pieces.push_back({address - source, length, cell});
    });
    Clear(destination, size);
    for (const Piece& piece : pieces) {
      ForEach(destination + piece.offset, piece.size,
              [&](Cell& cell, std::uint64_t, std::uint64_t) { cell = piece.cell; });
    }
  }

  bool empty() const { return regions_.empty(); }

  // Hints that `address` will be accessed soon; the first brings in what the second needs.
  void PrefetchPage(std::uint64_t address) {
    if (const Page* page = FindPage(address)) {
      __builtin_prefetch(&page->lines[address % kPageSize / kLineSize]);
      __builtin_prefetch(&page->layout[address % kPageSize / kWordSize]);
    }
  }
  void PrefetchCell(std::uint64_t address) {
    const Page* page = FindPage(address);
    if (page == nullptr) return;
    if (const Line* line = page->lines[address % kPageSize / kLineSize]) {
      __builtin_prefetch(&line->cells[address % kLineSize / 4], 1);
    }
  }

 private:
  static constexpr unsigned kWordSize = 8;
  static constexpr unsigned kLineSize = 64;
  static constexpr unsigned kPageSize = 4096;
  static constexpr unsigned kRegionSize = 1 << 24;
  static constexpr unsigned kWordsPerLine = kLineSize / kWordSize;
  static constexpr unsigned kLinesPerPage = kPageSize / kLineSize;
  static constexpr unsigned kCachedRegionBits = 8;

  enum Layout : std::uint8_t { kWhole, kHalves, kBytes };

  // Cells of 64 bytes of program memory.
  struct Line {
    std::array<Cell, 2 * kWordsPerLine> cells{};  // kWhole: the even one; kHalves: both
    std::array<std::unique_ptr<Cell[]>, kWordsPerLine> bytes;  // kBytes: eight cells
  };

  // How the words of a page are cut lies apart from the cells, so that a look-up waits for one
  // distant cache line only, that of the cell.
  struct Page {
    std::array<Layout, kPageSize / kWordSize> layout{};
    std::array<Line*, kLinesPerPage> lines{};  // null: no history
  };

  // 16 MiB of program memory.
  struct Region {
    std::array<Page*, kRegionSize / kPageSize> pages{};
    unsigned count = 0;  // of pages
  };

  struct CachedRegion {
    std::uint64_t number = ~std::uint64_t{0};
    Region* region = nullptr;
  };

  // Heaps and stacks lie at multiples of large powers of two, so all bits of the number count.
  static std::size_t CacheSlot(std::uint64_t region_number) {
    return region_number * 0x9e3779b97f4a7c15u >> (64 - kCachedRegionBits);
  }

  // The cells of one word and how it is cut.
  struct Place {
    Line* line;
    unsigned word;  // in the line
    Layout* layout;

    Cell& whole() const { return line->cells[2 * word]; }
    Cell& low() const { return line->cells[2 * word]; }
    Cell& high() const { return line->cells[2 * word + 1]; }
    std::unique_ptr<Cell[]>& bytes() const { return line->bytes[word]; }
  };

  // Calls visit(word, low, high) for each word that [address, end) touches in its bytes [low,
  // high).
  template <class Visit>
  static void ForEachWord(std::uint64_t address, std::uint64_t end, Visit&& visit) {
    while (address < end) {
      const std::uint64_t word = address - address % kWordSize;
      visit(word, static_cast<unsigned>(address - word),
            static_cast<unsigned>(std::min<std::uint64_t>(kWordSize, end - word)));
      address = word + kWordSize;
    }
  }

  // Calls visit(base, page) for each page that has cells and touches [address, end), ascending.
  template <class Visit>
  void ForEachPage(std::uint64_t address, std::uint64_t end, Visit&& visit) {
    if (address >= end) return;
    const std::uint64_t first_page = address / kPageSize;
    const std::uint64_t last_page = (end - 1) / kPageSize;
    if (first_page == last_page) [[likely]] {
      if (Page* page = FindPage(address)) visit(first_page * kPageSize, *page);
      return;
    }
    for (auto region = regions_.lower_bound(address / kRegionSize);
         region != regions_.end() && region->first * kRegionSize < end; ++region) {
      const std::uint64_t base = region->first * kRegionSize;
      const std::uint64_t from = address > base ? (address - base) / kPageSize : 0;
      const std::uint64_t to =
          std::min<std::uint64_t>(kRegionSize / kPageSize - 1, (end - 1 - base) / kPageSize);
      for (std::uint64_t p = from; p <= to; ++p) {
        if (Page* page = region->second->pages[p]) visit(base + p * kPageSize, *page);
      }
    }
  }

  template <class Visit>
  static void VisitWord(Place place, std::uint64_t base, unsigned low, unsigned high,
                        Visit& visit) {
    const bool halves = (low | high) % 4 == 0;
    if (*place.layout == kWhole) {
      if (high - low == kWordSize) {
        visit(place.whole(), base, std::uint64_t{kWordSize});
        return;
      }
      if (halves) {
        place.high() = place.low();
        *place.layout = kHalves;
      }
    }
    if (*place.layout == kHalves && halves) {
      if (low == 0) visit(place.low(), base, std::uint64_t{4});
      if (high == kWordSize) visit(place.high(), base + 4, std::uint64_t{4});
      if (high - low == kWordSize) Merge(place);
      return;
    }
    if (*place.layout != kBytes) SplitToBytes(place);
    Cell* const bytes = place.bytes().get();
    for (unsigned i = low; i < high; ++i) visit(bytes[i], base + i, std::uint64_t{1});
    if (high - low == kWordSize) Merge(place);
  }

  // Makes a cut word whole again if its parts have the same history, as they have after most
  // accesses to all of it.
  static void Merge(Place place) {
    if constexpr (requires(const Cell& cell) { cell.HasHistoryOf(cell); }) {
      if (*place.layout == kHalves) {
        if (!place.low().HasHistoryOf(place.high())) return;
        place.high() = Cell{};
      } else {
        Cell* const bytes = place.bytes().get();
        for (unsigned i = 1; i < kWordSize; ++i) {
          if (!bytes[0].HasHistoryOf(bytes[i])) return;
        }
        place.whole() = bytes[0];
        for (unsigned i = 0; i < kWordSize; ++i)
          bytes[i] = Cell{};  // the array stays for the next cut
      }
      *place.layout = kWhole;
    }
  }

  template <class Visit>
  static void PeekWord(Place place, std::uint64_t base, unsigned low, unsigned high, Visit& visit) {
    const auto peek = [&](Cell& cell, unsigned from, unsigned to) {
      from = std::max(from, low);
      to = std::min(to, high);
      if (from < to) visit(cell, base + from, std::uint64_t{to - from});
    };
    switch (*place.layout) {
      case kWhole:
        peek(place.whole(), 0, 8);
        break;
      case kHalves:
        peek(place.low(), 0, 4);
        peek(place.high(), 4, 8);
        break;
      case kBytes:
        for (unsigned i = low; i < high; ++i) peek(place.bytes()[i], i, i + 1);
        break;
    }
  }

  [[gnu::noinline]] static void SplitToBytes(Place place) {
    std::unique_ptr<Cell[]>& bytes = place.bytes();
    if (!bytes) bytes = std::make_unique<Cell[]>(kWordSize);
    const bool halves = *place.layout == kHalves;
    for (unsigned i = 0; i < kWordSize; ++i) {
      bytes[i] = halves && i >= 4 ? place.high() : place.low();
    }
    place.low() = Cell{};
    place.high() = Cell{};
    *place.layout = kBytes;
  }

  static void ClearInPage(Page& page, std::uint64_t base, std::uint64_t address,
                          std::uint64_t end) {
    const auto clear = [](Cell& cell, std::uint64_t, std::uint64_t) { cell = Cell{}; };
    const std::uint64_t last = std::min(end, base + kPageSize);
    ForEachWord(std::max(address, base), last,
                [&](std::uint64_t word, unsigned low, unsigned high) {
                  if (page.lines[word % kPageSize / kLineSize] == nullptr) return;
                  const Place place = PlaceIn(page, word);
                  if (high - low == kWordSize) {
                    place.low() = Cell{};
                    place.high() = Cell{};
                    place.bytes().reset();
                    *place.layout = kWhole;
                  } else {
                    VisitWord(place, word, low, high, clear);
                  }
                });
  }

  void ErasePage(std::uint64_t address) {
    const auto found = regions_.find(address / kRegionSize);
    Region& region = *found->second;
    DeletePage(std::exchange(region.pages[address % kRegionSize / kPageSize], nullptr));
    if (--region.count > 0) return;
    cache_[CacheSlot(found->first)] = {};
    regions_.erase(found);
  }

  void DeletePage(Page* page) {
    for (Line* const line : page->lines) {
      if (line != nullptr) line_pool_.Delete(line);
    }
    page_pool_.Delete(page);
  }

  static Place PlaceIn(Page& page, std::uint64_t address) {
    return {page.lines[address % kPageSize / kLineSize],
            static_cast<unsigned>(address % kLineSize / kWordSize),
            &page.layout[address % kPageSize / kWordSize]};
  }

  Page* FindPage(std::uint64_t address) {
    const std::uint64_t number = address / kRegionSize;
    CachedRegion& cached = cache_[CacheSlot(number)];
    if (cached.number != number) [[unlikely]] {
      const auto found = regions_.find(number);
      cached = {number, found == regions_.end() ? nullptr : found->second.get()};
    }
    if (cached.region == nullptr) return nullptr;
    return cached.region->pages[address % kRegionSize / kPageSize];
  }

  Place PlaceFor(std::uint64_t address) {
    Page* page = FindPage(address);
    if (page == nullptr || page->lines[address % kPageSize / kLineSize] == nullptr) [[unlikely]] {
      page = MakeLine(address);
    }
    return PlaceIn(*page, address);
  }

  [[gnu::noinline]] Page* MakeLine(std::uint64_t address) {
    const std::uint64_t number = address / kRegionSize;
    std::unique_ptr<Region>& region = regions_[number];
    if (!region) region = std::make_unique<Region>();
    cache_[CacheSlot(number)] = {number, region.get()};
    Page*& page = region->pages[address % kRegionSize / kPageSize];
    if (page == nullptr) {
      page = page_pool_.New();
      ++region->count;
    }
    Line*& line = page->lines[address % kPageSize / kLineSize];
    if (line == nullptr) line = line_pool_.New();
    return page;
  }

  SlabPool<Line> line_pool_;
  SlabPool<Page> page_pool_;
  std::map<std::uint64_t, std::unique_ptr<Region>> regions_;
  std::array<CachedRegion, 1 << kCachedRegionBits>
      cache_;  // direct-mapped; null = known to be absent
};

}  // namespace trapline
