// Byte-exact shadow memory: what a detector remembers about every byte of the program's memory.
//
// A cell stands for all bytes that so far were always accessed together, or of which the detector
// says so (Condense): a page, a line of 64 bytes, an 8-byte word, half of one, a single byte, or
// those bytes of a word that are accessed at all. An access that cuts a cell splits it first, and
// both parts keep the full history. So two accesses meet in a cell exactly when their bytes
// overlap, nothing is evicted but what the detector says (Forget), and the usual aligned 4- and
// 8-byte accesses touch one cell each.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "detector/cell_pool.h"
#include "detector/page_index.h"
#include "detector/slab_pool.h"

namespace trapline {

// Cell: default-constructed = no history; copyable. If it has bool HasHistoryOf(const Cell&) const,
// cells that were cut and have the same history again are merged; if it has bool empty() const,
// which is true of one without a history, words of which only some bytes are accessed need not be
// cut; if it has PrefetchMore() const after Prefetch() const, hints that bring in what it leads to,
// Forget gives them. Addresses and sizes are bytes; address + size must stay below 2^64 - 4096. Not
// thread-safe.
template <class Cell>
class ShadowMemory {
 public:
  // How 64 bytes of program memory are cut, and where their cells are: those of four neighbouring
  // words side by side. Apart from the cells, so that a look-up waits for one distant cache line
  // only.
  struct Line;

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
  // ascending order, making them where there are none. Those of lines only if `size` is more than a
  // line's, so that whoever remembers shorter accesses by their distance need not move them.
  template <class Visit>
  void ForEach(std::uint64_t address, std::uint64_t size, Visit&& visit) {
    const unsigned offset = address % kWordSize;
    if (offset + size <= kWordSize) [[likely]] {
      VisitWord(PlaceFor(address), address - offset, offset, offset + static_cast<unsigned>(size),
                visit);
      return;
    }
    ForEachLine(address, address + size, [&](std::uint64_t from, std::uint64_t to) {
      Line& line = LineFor(from);
      if (!line.HasWords() && to - from == kLineSize && size > kLineSize) {
        if (line.blocks[0] == 0) line.blocks[0] = line_cells_.New();
        visit(*AllOf(line), from, std::uint64_t{kLineSize});
        return;
      }
      VisitWords(line, from, to, visit);
    });
  }

  // The line of `address`, null if nothing near it has a history or its page has one cell. Valid as
  // long as lines_version() stays what it is.
  [[gnu::always_inline]] Line* FindLine(std::uint64_t address) const {
    Page* const page = FindPage(address);
    return page == nullptr ? nullptr : &page->lines[address % kPageSize / kLineSize];
  }
  std::uint64_t lines_version() const { return lines_version_; }
  // Changes whenever a cell that was found may not be that of its address any more.
  std::uint64_t cells_version() const { return cells_version_; }

  // The cell that makes up exactly [address, address+size), if there is one already; the quick way
  // for most accesses. `line` is that of `address`.
  [[gnu::always_inline]] Cell* FindExact(const Line* line, std::uint64_t address,
                                         std::uint64_t size) const {
    if (line == nullptr) [[unlikely]]
      return nullptr;
    const unsigned word = address % kLineSize / kWordSize;
    const Layout layout = line->layout[word];
    if (layout >= kBytes) [[unlikely]] {
      if (layout == kBytes) return size == 1 ? BytesOf(*line, word) + address % kWordSize : nullptr;
      return IsPart(layout, address, size) ? CellOf(*line, word) : nullptr;
    }
    // One question instead of two, since a wrong guess costs more than the answers.
    const bool exact = (size == kWordSize >> layout) & ((address & (size - 1)) == 0);
    return exact ? CellOf(*line, word) + (address / 4 & layout) * kGroup : nullptr;
  }
  Cell* FindExact(std::uint64_t address, std::uint64_t size) const {
    return FindExact(FindLine(address), address, size);
  }
  // Of 16 bytes, the two cells side by side, of a word each, that make them up; else as FindExact.
  [[gnu::always_inline]] Cell* FindCells(const Line* line, std::uint64_t address,
                                         std::uint64_t size) const {
    if (line == nullptr || size != 2 * kWordSize) [[likely]]
      return FindExact(line, address, size);
    return AreExact(line, address, size) ? CellOf(*line, address % kLineSize / kWordSize) : nullptr;
  }

  // Hints, one after the other with some time in between, that the cell of `address`, and before
  // that its line, will be asked for. The first one is worth while in large memories.
  bool PrefetchesPages() const { return regions_.size() > kFewRegions; }
  [[gnu::always_inline]] void PrefetchPage(std::uint64_t address) const {
    if (const Region* const region = region_index_.Find(address / kRegionSize))
      __builtin_prefetch(&region->pages[address % kRegionSize / kPageSize]);
  }
  // As FindCells, but null for a byte's cell, which is another step away.
  [[gnu::always_inline]] Cell* PrefetchCells(const Line* line, std::uint64_t address,
                                             std::uint64_t size) const {
    if (line == nullptr) [[unlikely]]
      return nullptr;
    const unsigned word = address % kLineSize / kWordSize;
    const Layout layout = line->layout[word];
    if (layout >= kBytes) [[unlikely]] {
      if (layout == kNone) return nullptr;
      Cell* const cell = CellOf(*line, word);
      __builtin_prefetch(cell, 1);
      return IsPart(layout, address, size) ? cell : nullptr;
    }
    Cell* const cell = CellOf(*line, word) + (address / 4 & layout) * kGroup;
    __builtin_prefetch(cell, 1);
    return AreExact(line, address, size) ? cell : nullptr;
  }

  // Calls visit(cell, address, size) for all cells with some byte in [address, address+size);
  // address and size are the overlap. Makes and splits nothing.
  template <class Visit>
  void ForEachExisting(std::uint64_t address, std::uint64_t size, Visit&& visit) {
    const std::uint64_t end = address + size;
    ForEachPage(address, end, [&](std::uint64_t base, Page& page) {
      const std::uint64_t first = std::max(address, base) - base;
      const std::uint64_t last = std::min(end - base, std::uint64_t{kPageSize}) - 1;
      for (std::uint64_t l = first / kLineSize; l <= last / kLineSize; ++l) {
        Line& line = page.lines[l];
        if (!line.HasHistory()) continue;
        const std::uint64_t from = std::max(address, base + l * kLineSize);
        const std::uint64_t to = std::min(end, base + (l + 1) * kLineSize);
        if (!line.HasWords()) {
          visit(*AllOf(line), from, to - from);
          continue;
        }
        ForEachWord(from, to, [&](std::uint64_t word, unsigned low, unsigned high) {
          PeekWord(PlaceIn(line, word), word, low, high, visit);
        });
      }
    });
    for (auto page = pages_of_one_.lower_bound(address / kPageSize);
         page != pages_of_one_.end() && page->first * kPageSize < end; ++page) {
      const std::uint64_t base = page->first * kPageSize;
      const std::uint64_t from = std::max(address, base);
      visit(page->second, from, std::min(end, base + kPageSize) - from);
    }
  }

  // [address, address+size) has no history any more. Takes time in proportion to the memory that
  // has one, as does Copy.
  void Clear(std::uint64_t address, std::uint64_t size) {
    const std::uint64_t end = address + size;
    if (!pages_of_one_.empty()) ClearPagesOfOne(address, end);
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
  // ranges may overlap. Calls moved(cell, to, from) for the cells of the destination with their
  // addresses and those of what they are copies of.
  template <class Moved>
  void Copy(std::uint64_t destination, std::uint64_t source, std::uint64_t size, Moved&& moved) {
    struct Piece {
      std::uint64_t offset, size;
      Cell cell;
    };
    std::vector<Piece> pieces;
    // Those of several words in words, if these are other ones at the destination.
    const bool in_words = (destination - source) % kWordSize != 0;
    ForEachExisting(source, size, [&](Cell& cell, std::uint64_t address, std::uint64_t length) {
      while (length > 0) {
        const std::uint64_t piece =
            in_words ? std::min(length, kWordSize - address % kWordSize) : length;
        pieces.push_back({address - source, piece, cell});
        address += piece;
        length -= piece;
      }
    });
    Clear(destination, size);
    for (const Piece& piece : pieces) {
      ForEach(destination + piece.offset, piece.size,
              [&](Cell& cell, std::uint64_t address, std::uint64_t) {
                cell = piece.cell;
                moved(cell, address, address - destination + source);
              });
    }
  }
  void Copy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
    Copy(destination, source, size, [](Cell&, std::uint64_t, std::uint64_t) {});
  }

  bool empty() const { return regions_.empty() && pages_of_one_.empty(); }

  // Bytes of cells, those of lines and pages that have one left out.
  std::uint64_t cell_bytes() const { return cells_.bytes(); }

  // Bytes of what tells where they are.
  std::uint64_t line_bytes() const { return page_pool_.size() * sizeof(Page); }

  // Gives a line whose words have like histories one cell, and a page whose lines have. may_join(a,
  // b): whether the history of cell a may stand for that of b, too; must be transitive. An access
  // to some of those bytes cuts them again. Takes time in proportion to the memory that has a
  // history.
  template <class MayJoin>
  void Condense(MayJoin&& may_join) {
    std::vector<std::pair<std::uint64_t, Cell>> pages_of_one;
    ForEachPage(0, ~std::uint64_t{0}, [&](std::uint64_t base, Page& page) {
      if (const Cell* const cell = CondenseLines(page, may_join))
        pages_of_one.emplace_back(base, *cell);
    });
    for (auto& [base, cell] : pages_of_one) {
      ErasePage(base);
      pages_of_one_.emplace(base / kPageSize, std::move(cell));
    }
  }

  // Takes away the history of each half of a line, and of each page or line that has one cell, of
  // all whose cells may_forget(cell) says so. Takes time in proportion to the memory that has a
  // history.
  template <class MayForget>
  void Forget(MayForget&& may_forget) {
    std::vector<std::uint64_t> emptied;
    ForEachPage(0, ~std::uint64_t{0}, [&](std::uint64_t base, Page& page) {
      PrefetchPageCells(base, page);
      bool any = false;
      for (Line& line : page.lines) {
        if (line.HasOneCell() && may_forget(*AllOf(line))) ClearLine(line);
        for (unsigned half = 0; half < 2; ++half) {
          if (line.HasWordsIn(half) && IsOfSuch(line, half, may_forget)) ClearHalf(line, half);
        }
        any = any || line.HasHistory();
      }
      if (!any) emptied.push_back(base);
    });
    for (const std::uint64_t base : emptied) ErasePage(base);
    std::erase_if(pages_of_one_, [&](const auto& page) { return may_forget(page.second); });
  }

  // The cell of all the line or page of `address`, null if its words have cells of their own or no
  // history.
  Cell* FindJoined(std::uint64_t address) {
    const Line* const line = FindLine(address);
    if (line != nullptr) return line->HasOneCell() ? AllOf(*line) : nullptr;
    const auto found = pages_of_one_.find(address / kPageSize);
    return found == pages_of_one_.end() ? nullptr : &found->second;
  }

 private:
  static constexpr unsigned kWordSize = 8;
  static constexpr unsigned kLineSize = 64;
  static constexpr unsigned kPageSize = 4096;
  static constexpr unsigned kRegionSize = 1 << 24;
  // What tells where the pages of so many regions are (32 KiB each) is in a cache, mostly.
  static constexpr std::size_t kFewRegions = 4;
  static constexpr unsigned kWordsPerLine = kLineSize / kWordSize;
  static constexpr unsigned kLinesPerPage = kPageSize / kLineSize;

  static constexpr unsigned kGroup = 4;  // words that have their cells in one block

  // How often a word is halved; kNone: it has no cell, but the line may have one (AreExact finds no
  // size that is exact then).
  enum Layout : std::uint8_t { kWhole = 0, kHalves = 1, kBytes = 3, kNone = 0x10 };
  // From here on: one cell stands for some of its bytes, and the others have no history; PartOf.
  static constexpr std::uint8_t kFirstPart = 0x80;

  using Pool = CellPool<Cell, kGroup>;
  using Block = typename Pool::Reference;

 public:
  struct Line {
    // A cell for each word of a half of the line, that of its low half if it is kHalves; and, if
    // kHighHalves is in `blocks`, another one for each, that of the high half. 0: there are none.
    // If neither half has any, blocks[0] may be that of line_cells_ for all of the line.
    std::array<Block, 2> blocks{};
    std::array<Layout, kWordsPerLine> layout{kNone, kNone, kNone, kNone,
                                             kNone, kNone, kNone, kNone};

    bool HasHistory() const { return (blocks[0] | blocks[1]) != 0; }
    bool HasWordsIn(unsigned half) const { return layout[half * kGroup] != kNone; }
    bool HasWords() const { return HasWordsIn(0) || HasWordsIn(1); }
    bool HasOneCell() const { return HasHistory() && !HasWords(); }
  };
  static_assert(sizeof(Line) == 16);

 private:
  static constexpr Block kHighHalves = Block{1} << 31;

  // Of a word whose bytes [low, high) have a cell and whose others have no history; not all bytes.
  static constexpr Layout PartOf(unsigned low, unsigned high) {
    return static_cast<Layout>(kFirstPart | low << 4 | high);
  }
  static constexpr unsigned LowOf(Layout part) { return part >> 4 & 7; }
  static constexpr unsigned HighOf(Layout part) { return part & 15; }
  // Whether that cell is the one of exactly [address, address+size).
  static bool IsPart(Layout part, std::uint64_t address, std::uint64_t size) {
    const unsigned low = LowOf(part);
    return address % kWordSize == low && part >= kFirstPart && size == HighOf(part) - low;
  }

  // Whether the cells of a word that is kWhole or kHalves, and of its neighbour if `size` is more
  // than a word's, make up exactly [address, address+size). In one step, since a wrong guess costs
  // more. The lowest bits of a neighbour's layout are not those of kWhole if it is anything else.
  [[gnu::always_inline]] static bool AreExact(const Line* line, std::uint64_t address,
                                              std::uint64_t size) {
    const unsigned word = address % kLineSize / kWordSize;
    const bool pair = size == 2 * kWordSize;
    const unsigned layout = (line->layout[word] | (pair ? line->layout[word ^ 1] : 0)) % 32;
    const bool exact = (size >> unsigned{pair}) == kWordSize >> layout;
    return exact & ((address & (size - 1)) == 0);
  }

  struct Page {
    std::array<Line, kLinesPerPage> lines{};
  };

  // 16 MiB of program memory.
  struct Region {
    std::array<Page*, kRegionSize / kPageSize> pages{};
    unsigned count = 0;  // of pages
  };

  // The cells of one word.
  struct Place {
    Line* line;
    unsigned word;  // in the line
    Cell* cell;     // of all of it, its low half or its part

    Layout& layout() const { return line->layout[word]; }
    Block& block() const { return line->blocks[word / kGroup]; }
    bool has_high() const { return (block() & kHighHalves) != 0; }
    Cell& whole() const { return *cell; }
    Cell& low() const { return *cell; }
    Cell& high() const { return cell[kGroup]; }
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

  // Calls visit(from, to) for the part of each line that [address, end) touches.
  template <class Visit>
  static void ForEachLine(std::uint64_t address, std::uint64_t end, Visit&& visit) {
    while (address < end) {
      const std::uint64_t next = std::min(end, address - address % kLineSize + kLineSize);
      visit(address, next);
      address = next;
    }
  }

  // VisitWord for the words that [from, to) of the line touches.
  template <class Visit>
  void VisitWords(Line& line, std::uint64_t from, std::uint64_t to, Visit& visit) {
    ForEachWord(from, to, [&](std::uint64_t word, unsigned low, unsigned high) {
      const Place place = PlaceFor(line, word);
      if (high - low == kWordSize && place.layout() == kWhole) [[likely]] {
        visit(place.whole(), word, std::uint64_t{kWordSize});
      } else {
        VisitWord(place, word, low, high, visit);
      }
    });
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
  void VisitWord(Place place, std::uint64_t base, unsigned low, unsigned high, Visit& visit) {
    const bool halves = (low | high) % 4 == 0;
    if (place.layout() >= kFirstPart) {
      if (IsPart(place.layout(), low, high - low)) {
        visit(place.whole(), base + low, std::uint64_t{high - low});
        return;
      }
      SplitPart(place, halves);
    }
    if (place.layout() == kWhole) {
      if (high - low == kWordSize) {
        visit(place.whole(), base, std::uint64_t{kWordSize});
        return;
      }
      // Two halves side by side cost nothing where the block has room for them.
      if (IsEmpty(place.whole()) && !(halves && place.has_high())) {
        SetLayout(place, PartOf(low, high));
        visit(place.whole(), base + low, std::uint64_t{high - low});
        return;
      }
      if (halves) {
        Halve(place);
        place.high() = place.low();
      }
    }
    if (place.layout() == kHalves && halves) {
      if (low == 0) visit(place.low(), base, std::uint64_t{4});
      if (high == kWordSize) visit(place.high(), base + 4, std::uint64_t{4});
      if (high - low == kWordSize) Merge(place);
      return;
    }
    if (place.layout() != kBytes) SplitToBytes(place);
    Cell* const bytes = BytesIn(place.whole());
    for (unsigned i = low; i < high; ++i) visit(bytes[i], base + i, std::uint64_t{1});
    if (high - low == kWordSize) Merge(place);
  }

  static bool IsEmpty(const Cell& cell) {
    if constexpr (requires { cell.empty(); }) {
      return cell.empty();
    } else {
      return false;
    }
  }

  // Gives a word that is a part cells for all its bytes: two, if its own is half of it and
  // `halves`.
  [[gnu::noinline]] void SplitPart(Place& place, bool halves) {
    const unsigned low = LowOf(place.layout());
    const unsigned high = HighOf(place.layout());
    if (IsEmpty(place.whole())) {  // again
      SetLayout(place, kWhole);
    } else if (halves && (low | high) % 4 == 0) {
      Halve(place);
      if (low != 0) place.high() = std::exchange(place.low(), Cell{});
    } else {
      const Cell cell = place.whole();
      MakeBytes(place, [&](unsigned byte) { return byte >= low && byte < high ? cell : Cell{}; });
    }
  }

  // Gives the high half a cell of its own, without a history.
  void Halve(Place& place) {
    if (!place.has_high()) {
      Block& block = place.block();
      const Block larger = cells_.New(2);
      for (unsigned i = 0; i < kGroup; ++i) {
        Cell* const from = cells_.At(block) + i;
        Cell* const to = cells_.At(larger) + i;
        if (place.line->layout[place.word / kGroup * kGroup + i] == kBytes) {
          const Block bytes = BlockIn(*from);
          new (static_cast<void*>(from)) Cell;  // to be deleted with the others
          PutBlock(to, bytes);
        } else {
          *to = std::move(*from);
        }
      }
      cells_.Delete(std::exchange(block, larger | kHighHalves));
      place.cell = CellOf(*place.line, place.word);
    }
    SetLayout(place, kHalves);
  }

  // Makes a cut word whole again if its parts have the same history, as they have after most
  // accesses to all of it.
  void Merge(Place place) {
    if constexpr (requires(const Cell& cell) { cell.HasHistoryOf(cell); }) {
      if (place.layout() == kHalves) {
        if (!place.low().HasHistoryOf(place.high())) return;
        place.high() = Cell{};
      } else {
        const Cell* const bytes = BytesIn(place.whole());
        for (unsigned i = 1; i < kWordSize; ++i) {
          if (!bytes[0].HasHistoryOf(bytes[i])) return;
        }
        DropBytes(place, bytes[0]);
      }
      SetLayout(place, kWhole);
    }
  }

  void SetLayout(Place place, Layout layout) {
    place.layout() = layout;
    ++cells_version_;
  }

  template <class Visit>
  void PeekWord(Place place, std::uint64_t base, unsigned low, unsigned high, Visit& visit) const {
    const auto peek = [&](Cell& cell, unsigned from, unsigned to) {
      from = std::max(from, low);
      to = std::min(to, high);
      if (from < to) visit(cell, base + from, std::uint64_t{to - from});
    };
    switch (place.layout()) {
      case kWhole:
        peek(place.whole(), 0, 8);
        break;
      case kHalves:
        peek(place.low(), 0, 4);
        peek(place.high(), 4, 8);
        break;
      case kBytes:
        for (unsigned i = low; i < high; ++i) peek(BytesIn(place.whole())[i], i, i + 1);
        break;
      case kNone:
        break;
      default:
        peek(place.whole(), LowOf(place.layout()), HighOf(place.layout()));
    }
  }

  [[gnu::noinline]] void SplitToBytes(Place place) {
    const Cell low = place.low();
    if (place.layout() == kHalves) {
      const Cell high = std::exchange(place.high(), Cell{});
      MakeBytes(place, [&](unsigned byte) -> const Cell& { return byte < 4 ? low : high; });
    } else {
      MakeBytes(place, [&](unsigned) -> const Cell& { return low; });
    }
  }

  // A word that is kBytes has, instead of its cell, the block with those of its bytes.
  static_assert(sizeof(Block) <= sizeof(Cell));
  static_assert(alignof(Block) <= alignof(Cell));
  static Block BlockIn(const Cell& cell) {
    return *std::launder(reinterpret_cast<const Block*>(&cell));
  }
  static void PutBlock(Cell* cell, Block block) {
    std::destroy_at(cell);
    new (static_cast<void*>(cell)) Block(block);
  }
  Cell* BytesIn(const Cell& cell) const { return cells_.At(BlockIn(cell)); }

  // Gives each byte of a word a cell of its own, cell_of(number).
  template <class CellOfByte>
  void MakeBytes(Place place, CellOfByte&& cell_of) {
    const Block block = cells_.New(kWordSize / kGroup);
    for (unsigned i = 0; i < kWordSize; ++i) cells_.At(block)[i] = cell_of(i);
    PutBlock(place.cell, block);
    SetLayout(place, kBytes);
  }

  // A word that was kBytes has one cell again.
  void DropBytes(Place place, Cell cell) {
    cells_.Delete(BlockIn(*place.cell), kWordSize / kGroup);
    new (static_cast<void*>(place.cell)) Cell(std::move(cell));
  }

  // Those that are cleared in part get lines again.
  void ClearPagesOfOne(std::uint64_t address, std::uint64_t end) {
    const auto first = pages_of_one_.lower_bound(address / kPageSize);
    for (auto page = first; page != pages_of_one_.end() && page->first * kPageSize < end;) {
      const std::uint64_t base = (page++)->first * kPageSize;
      if (address <= base && end - base >= kPageSize) {
        pages_of_one_.erase(base / kPageSize);
      } else {
        MakePage(base);
      }
    }
  }

  // The cell of all lines, or null.
  template <class MayJoin>
  Cell* CondenseLines(Page& page, MayJoin&& may_join) {
    bool all = true;
    for (Line& line : page.lines) {
      if (HasLikeWords(line, may_join)) {
        Cell cell = std::move(*CellOf(line, 0));
        ClearLine(line);
        if (!IsEmpty(cell)) MakeAll(line, std::move(cell));
      }
      all = all && line.HasOneCell() && may_join(*AllOf(page.lines[0]), *AllOf(line));
    }
    return all ? AllOf(page.lines[0]) : nullptr;
  }

  // Hints that all cells of the page at `base` are looked at soon: their blocks lie wherever there
  // was room.
  void PrefetchPageCells(std::uint64_t base, const Page& page) {
    for (const Line& line : page.lines) {
      if (line.HasOneCell()) {
        __builtin_prefetch(AllOf(line));
        continue;
      }
      for (unsigned half = 0; half < 2; ++half) {
        if (line.HasWordsIn(half)) __builtin_prefetch(CellOf(line, half * kGroup));
      }
    }
    if constexpr (requires(const Cell& cell) { cell.PrefetchMore(); }) {
      const auto first = [](Cell& cell, std::uint64_t, std::uint64_t) { cell.Prefetch(); };
      const auto then = [](Cell& cell, std::uint64_t, std::uint64_t) { cell.PrefetchMore(); };
      ForEachExisting(base, kPageSize, first);
      ForEachExisting(base, kPageSize, then);
    }
  }

  template <class Is>
  bool IsOfSuch(Line& line, unsigned half, Is&& is) const {
    bool all = true;
    const auto visit = [&](const Cell& cell, std::uint64_t, std::uint64_t) {
      all = all && is(cell);
    };
    for (unsigned word = half * kGroup; all && word < (half + 1) * kGroup; ++word)
      PeekWord(PlaceIn(line, word * kWordSize), 0, 0, kWordSize, visit);
    return all;
  }

  template <class MayJoin>
  bool HasLikeWords(const Line& line, MayJoin&& may_join) const {
    for (unsigned word = 0; word < kWordsPerLine; ++word) {
      if (line.layout[word] != kWhole || !may_join(*CellOf(line, 0), *CellOf(line, word)))
        return false;
    }
    return true;
  }

  void ClearInPage(Page& page, std::uint64_t base, std::uint64_t address, std::uint64_t end) {
    const auto clear = [](Cell& cell, std::uint64_t, std::uint64_t) { cell = Cell{}; };
    ForEachLine(std::max(address, base), std::min(end, base + kPageSize),
                [&](std::uint64_t from, std::uint64_t to) {
                  Line& line = page.lines[from % kPageSize / kLineSize];
                  if (!line.HasHistory()) return;
                  if (to - from == kLineSize) {
                    ClearLine(line);
                    return;
                  }
                  if (line.HasOneCell()) CutLine(line);
                  ForEachWord(from, to, [&](std::uint64_t word, unsigned low, unsigned high) {
                    const Place place = PlaceIn(line, word);
                    const bool all = high - low == kWordSize || (place.layout() >= kFirstPart &&
                                                                 low <= LowOf(place.layout()) &&
                                                                 high >= HighOf(place.layout()));
                    if (all) {
                      ClearWord(place);
                    } else if (HasHistoryIn(place, low, high)) {
                      VisitWord(place, word, low, high, clear);
                    }
                  });
                });
  }

  // May say yes too often.
  static bool HasHistoryIn(Place place, unsigned low, unsigned high) {
    if (place.layout() == kNone) return false;
    if (place.layout() == kWhole) return !IsEmpty(place.whole());
    if (place.layout() <= kBytes) return true;
    return low < HighOf(place.layout()) && high > LowOf(place.layout());
  }

  void ClearWord(Place place) {
    if (place.layout() == kNone) return;
    if (place.layout() == kBytes) {
      DropBytes(place, {});
    } else {
      if (place.layout() == kHalves) place.high() = Cell{};
      place.low() = Cell{};
    }
    SetLayout(place, kWhole);
  }

  // Of which some words have cells.
  void ClearHalf(Line& line, unsigned half) {
    for (unsigned word = half * kGroup; word < (half + 1) * kGroup; ++word) {
      const Place place = PlaceIn(line, word * kWordSize);
      if (place.layout() == kBytes) DropBytes(place, {});
      SetLayout(place, kNone);
    }
    const Block block = std::exchange(line.blocks[half], 0);
    cells_.Delete(block & ~kHighHalves, (block & kHighHalves) != 0 ? 2 : 1);
  }

  void ClearLine(Line& line) {
    if (line.HasOneCell()) {
      line_cells_.Delete(std::exchange(line.blocks[0], 0));
      ++cells_version_;
    }
    for (unsigned half = 0; half < 2; ++half) {
      if (line.HasWordsIn(half)) ClearHalf(line, half);
    }
  }

  void ErasePage(std::uint64_t address) {
    const std::uint64_t number = address / kRegionSize;
    Region& region = *region_index_.Find(number);
    DeletePage(std::exchange(region.pages[address % kRegionSize / kPageSize], nullptr));
    if (--region.count > 0) return;
    region_index_.Erase(number);
    regions_.erase(number);
  }

  void DeletePage(Page* page) {
    for (Line& line : page->lines) ClearLine(line);
    page_pool_.Delete(page);
    ++lines_version_;
    ++cells_version_;
  }

  // The cell of a word that is not kNone, of all of it, its low half or its part.
  [[gnu::always_inline]] Cell* CellOf(const Line& line, unsigned word) const {
    return cells_.At(line.blocks[word / kGroup] & ~kHighHalves) + word % kGroup;
  }
  // Those of its bytes, if it is kBytes.
  Cell* BytesOf(const Line& line, unsigned word) const { return BytesIn(*CellOf(line, word)); }
  // The cell of all of a line that has a history and no words.
  Cell* AllOf(const Line& line) const { return line_cells_.At(line.blocks[0]); }
  void MakeAll(Line& line, Cell cell) {
    line.blocks[0] = line_cells_.New();
    *AllOf(line) = std::move(cell);
  }

  Place PlaceIn(Line& line, std::uint64_t address) const {
    const auto word = static_cast<unsigned>(address % kLineSize / kWordSize);
    return {&line, word, line.layout[word] == kNone ? nullptr : CellOf(line, word)};
  }

  [[gnu::always_inline]] Page* FindPage(std::uint64_t address) const {
    const Region* const region = region_index_.Find(address / kRegionSize);
    return region == nullptr ? nullptr : region->pages[address % kRegionSize / kPageSize];
  }

  Line& LineFor(std::uint64_t address) {
    Page* page = FindPage(address);
    if (page == nullptr) [[unlikely]]
      page = MakePage(address);
    return page->lines[address % kPageSize / kLineSize];
  }

  Place PlaceFor(std::uint64_t address) { return PlaceFor(LineFor(address), address); }
  Place PlaceFor(Line& line, std::uint64_t address) {
    const auto word = static_cast<unsigned>(address % kLineSize / kWordSize);
    if (line.layout[word] == kNone) [[unlikely]]
      MakeWords(line, word / kGroup);
    return {&line, word, CellOf(line, word)};
  }

  // Gives the words of a half of the line cells of their own, and those of the other half if the
  // line had one for all.
  [[gnu::noinline]] void MakeWords(Line& line, unsigned half) {
    if (line.HasOneCell()) {
      CutLine(line);
      return;
    }
    line.blocks[half] = cells_.New();
    std::fill_n(line.layout.begin() + half * kGroup, kGroup, kWhole);
  }

  // Gives the words of a line that has one cell cells of their own.
  void CutLine(Line& line) {
    const std::array<Block, 2> blocks{cells_.New(), cells_.New()};
    for (const Block block : blocks) std::fill_n(cells_.At(block), kGroup, *AllOf(line));
    line_cells_.Delete(line.blocks[0]);
    line.blocks = blocks;
    line.layout.fill(kWhole);
  }

  [[gnu::noinline]] Page* MakePage(std::uint64_t address) {
    const std::uint64_t number = address / kRegionSize;
    Region* region = region_index_.Find(number);
    if (region == nullptr) {
      region = (regions_[number] = std::make_unique<Region>()).get();
      region_index_.Insert(number, region);
    }
    ++region->count;
    Page* const page = page_pool_.New();
    region->pages[address % kRegionSize / kPageSize] = page;
    if (!pages_of_one_.empty()) {
      if (const auto one = pages_of_one_.find(address / kPageSize); one != pages_of_one_.end()) {
        for (Line& line : page->lines) MakeAll(line, one->second);
        pages_of_one_.erase(one);
      }
    }
    return page;
  }

  Pool cells_;
  CellPool<Cell, 1> line_cells_;
  SlabPool<Page> page_pool_;
  PageIndex<Region> region_index_;                            // by number
  std::map<std::uint64_t, std::unique_ptr<Region>> regions_;  // the same in order
  std::map<std::uint64_t, Cell> pages_of_one_;  // by number: the others, which have one cell each
  std::uint64_t lines_version_ = 0;             // with which the other one changes, too
  std::uint64_t cells_version_ = 0;
};

}  // namespace trapline
