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
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace trapline {

// Cell: default-constructed = no history; copyable. Addresses and sizes are bytes; address + size
// must not exceed 2^64 - 1. Not thread-safe.
template <class Cell>
class ShadowMemory {
 public:
  // Calls visit(cell, address, size) for the cells that make up exactly [address, address+size), in
  // ascending order, making them where there are none.
  template <class Visit>
  void ForEach(std::uint64_t address, std::uint64_t size, Visit&& visit) {
    const unsigned offset = address % kWordSize;
    if (offset + size <= kWordSize) [[likely]] {
      VisitWord(LineFor(address), address - offset, offset, offset + static_cast<unsigned>(size),
                visit);
      return;
    }
    const std::uint64_t end = address + size;
    while (address < end) {
      const unsigned low = address % kWordSize;
      const auto high =
          static_cast<unsigned>(std::min<std::uint64_t>(kWordSize, low + (end - address)));
      VisitWord(LineFor(address), address - low, low, high, visit);
      address += high - low;
    }
  }

  // Calls visit(cell, address, size) for all cells with some byte in [address, address+size);
  // address and size are the overlap. Makes and splits nothing.
  template <class Visit>
  void ForEachExisting(std::uint64_t address, std::uint64_t size, Visit&& visit) {
    if (pages_.empty()) return;
    const std::uint64_t end = address + size;
    while (address < end) {
      const std::uint64_t line_end = std::min(end, (address / kLineSize + 1) * kLineSize);
      if (Line* line = FindLine(address)) {
        for (std::uint64_t a = address; a < line_end;) {
          const unsigned low = a % kWordSize;
          const auto high =
              static_cast<unsigned>(std::min<std::uint64_t>(kWordSize, low + (line_end - a)));
          PeekWord(*line, a - low, low, high, visit);
          a += high - low;
        }
      }
      address = line_end;
    }
  }

  // [address, address+size) has no history any more. Takes time in proportion to the memory that
  // has one.
  void Clear(std::uint64_t address, std::uint64_t size) {
    if (size == 0) return;
    const std::uint64_t end = address + size;
    const std::uint64_t first_page = address / kPageSize;
    const std::uint64_t last_page = (end - 1) / kPageSize;
    if (last_page - first_page < pages_.size()) {
      for (std::uint64_t page = first_page; page <= last_page; ++page)
        ClearInPage(page, address, end);
      return;
    }
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, page] : pages_) {
      if (number >= first_page && number <= last_page) numbers.push_back(number);
    }
    for (const std::uint64_t number : numbers) ClearInPage(number, address, end);
  }

  // The history of [source, source+size) becomes that of [destination, destination+size) too; the
  // ranges may overlap.
  void Copy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
    struct Piece {
      std::uint64_t offset, size;
      Cell cell;
    };
    std::vector<Piece> pieces;
    ForEachInOrder(source, size, [&](Cell& cell, std::uint64_t address, std::uint64_t length) {
      pieces.push_back({address - source, length, cell});
    });
    Clear(destination, size);
    for (const Piece& piece : pieces) {
      ForEach(destination + piece.offset, piece.size,
              [&](Cell& cell, std::uint64_t, std::uint64_t) { cell = piece.cell; });
    }
  }

  // Calls visit(cell, address, size) for every cell there is, in no particular order.
  template <class Visit>
  void ForAll(Visit&& visit) {
    for (auto& [number, page] : pages_) {
      for (unsigned l = 0; l < kLinesPerPage; ++l) {
        if (!page->lines[l]) continue;
        const std::uint64_t base = number * kPageSize + l * kLineSize;
        for (unsigned w = 0; w < kWordsPerLine; ++w) {
          PeekWord(*page->lines[l], base + w * kWordSize, 0, kWordSize, visit);
        }
      }
    }
  }

  bool empty() const { return pages_.empty(); }

 private:
  static constexpr unsigned kWordSize = 8;
  static constexpr unsigned kLineSize = 64;
  static constexpr unsigned kPageSize = 4096;
  static constexpr unsigned kWordsPerLine = kLineSize / kWordSize;
  static constexpr unsigned kLinesPerPage = kPageSize / kLineSize;
  static constexpr unsigned kCachedPages = 512;

  enum Layout : std::uint8_t { kWhole, kHalves, kBytes };

  // Cells of 64 bytes of program memory.
  struct Line {
    std::array<Layout, kWordsPerLine> layout{};
    std::array<Cell, 2 * kWordsPerLine> cells{};  // kWhole: the even one; kHalves: both
    std::array<std::unique_ptr<Cell[]>, kWordsPerLine> bytes;  // kBytes: eight cells
  };

  struct Page {
    std::array<std::unique_ptr<Line>, kLinesPerPage> lines;
  };

  struct CachedPage {
    std::uint64_t number = ~std::uint64_t{0};
    Page* page = nullptr;
  };

  template <class Visit>
  static void VisitWord(Line& line, std::uint64_t base, unsigned low, unsigned high, Visit& visit) {
    const unsigned word = base % kLineSize / kWordSize;
    Cell* cells = &line.cells[2 * word];
    const bool halves = (low | high) % 4 == 0;
    if (line.layout[word] == kWhole) {
      if (high - low == kWordSize) {
        visit(cells[0], base, std::uint64_t{kWordSize});
        return;
      }
      if (halves) {
        cells[1] = cells[0];
        line.layout[word] = kHalves;
      }
    }
    if (line.layout[word] == kHalves && halves) [[likely]] {
      if (low == 0) visit(cells[0], base, std::uint64_t{4});
      if (high == kWordSize) visit(cells[1], base + 4, std::uint64_t{4});
      return;
    }
    if (line.layout[word] != kBytes) SplitToBytes(line, word);
    for (unsigned i = low; i < high; ++i) visit(line.bytes[word][i], base + i, std::uint64_t{1});
  }

  template <class Visit>
  static void PeekWord(Line& line, std::uint64_t base, unsigned low, unsigned high, Visit& visit) {
    const unsigned word = base % kLineSize / kWordSize;
    const auto peek = [&](Cell& cell, unsigned from, unsigned to) {
      from = std::max(from, low);
      to = std::min(to, high);
      if (from < to) visit(cell, base + from, std::uint64_t{to - from});
    };
    switch (line.layout[word]) {
      case kWhole:
        peek(line.cells[2 * word], 0, 8);
        break;
      case kHalves:
        peek(line.cells[2 * word], 0, 4);
        peek(line.cells[2 * word + 1], 4, 8);
        break;
      case kBytes:
        for (unsigned i = low; i < high; ++i) peek(line.bytes[word][i], i, i + 1);
        break;
    }
  }

  static void SplitToBytes(Line& line, unsigned word) {
    auto bytes = std::make_unique<Cell[]>(kWordSize);
    Cell* cells = &line.cells[2 * word];
    const bool halves = line.layout[word] == kHalves;
    for (unsigned i = 0; i < kWordSize; ++i) bytes[i] = cells[halves ? i / 4 : 0];
    cells[0] = Cell{};
    cells[1] = Cell{};
    line.bytes[word] = std::move(bytes);
    line.layout[word] = kBytes;
  }

  static void ClearWord(Line& line, unsigned word) {
    line.cells[2 * word] = Cell{};
    line.cells[2 * word + 1] = Cell{};
    line.bytes[word].reset();
    line.layout[word] = kWhole;
  }

  void ClearInPage(std::uint64_t number, std::uint64_t address, std::uint64_t end) {
    const auto found = pages_.find(number);
    if (found == pages_.end()) return;
    const std::uint64_t base = number * kPageSize;
    if (address <= base && end - base >= kPageSize) {
      cache_[number % kCachedPages] = {};
      pages_.erase(found);
      return;
    }
    for (unsigned l = 0; l < kLinesPerPage; ++l) {
      std::unique_ptr<Line>& line = found->second->lines[l];
      const std::uint64_t line_base = base + l * kLineSize;
      if (!line || end <= line_base || address >= line_base + kLineSize) continue;
      if (address <= line_base && end - line_base >= kLineSize) {
        line.reset();
        continue;
      }
      for (unsigned w = 0; w < kWordsPerLine; ++w) {
        const std::uint64_t word_base = line_base + w * kWordSize;
        if (end <= word_base || address >= word_base + kWordSize) continue;
        const auto low = static_cast<unsigned>(address > word_base ? address - word_base : 0);
        const auto high =
            static_cast<unsigned>(std::min<std::uint64_t>(kWordSize, end - word_base));
        if (high - low == kWordSize) {
          ClearWord(*line, w);
        } else {
          auto clear = [](Cell& cell, std::uint64_t, std::uint64_t) { cell = Cell{}; };
          VisitWord(*line, word_base, low, high, clear);
        }
      }
    }
  }

  // ForEachExisting in time proportional to the memory that has a history.
  template <class Visit>
  void ForEachInOrder(std::uint64_t address, std::uint64_t size, Visit&& visit) {
    if (size == 0) return;
    const std::uint64_t end = address + size;
    const std::uint64_t first_page = address / kPageSize;
    const std::uint64_t last_page = (end - 1) / kPageSize;
    if (last_page - first_page < pages_.size()) {
      ForEachExisting(address, size, visit);
      return;
    }
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, page] : pages_) {
      if (number >= first_page && number <= last_page) numbers.push_back(number);
    }
    std::sort(numbers.begin(), numbers.end());
    for (const std::uint64_t number : numbers) {
      const std::uint64_t from = std::max(address, number * kPageSize);
      const std::uint64_t to = number == last_page ? end : (number + 1) * kPageSize;
      ForEachExisting(from, to - from, visit);
    }
  }

  Page* FindPage(std::uint64_t address) {
    const std::uint64_t number = address / kPageSize;
    CachedPage& cached = cache_[number % kCachedPages];
    if (cached.number == number) return cached.page;
    const auto found = pages_.find(number);
    cached = {number, found == pages_.end() ? nullptr : found->second.get()};
    return cached.page;
  }

  Line* FindLine(std::uint64_t address) {
    Page* page = FindPage(address);
    return page == nullptr ? nullptr : page->lines[address % kPageSize / kLineSize].get();
  }

  Line& LineFor(std::uint64_t address) {
    if (Line* line = FindLine(address)) [[likely]]
      return *line;
    return MakeLine(address);
  }

  [[gnu::noinline]] Line& MakeLine(std::uint64_t address) {
    const std::uint64_t number = address / kPageSize;
    std::unique_ptr<Page>& page = pages_[number];
    if (!page) page = std::make_unique<Page>();
    cache_[number % kCachedPages] = {number, page.get()};
    std::unique_ptr<Line>& line = page->lines[address % kPageSize / kLineSize];
    if (!line) line = std::make_unique<Line>();
    return *line;
  }

  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::array<CachedPage, kCachedPages> cache_;  // direct-mapped; null page = known to be absent
};

}  // namespace trapline
