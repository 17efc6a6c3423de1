// What is known of pages, or of larger pieces of memory, by their numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace trapline {

// A hash table with open addressing of `kSlotsPerPage` slots for each page, at least, of 16 bytes.
// With 16 it is so thinly filled that nearly every page is where it is looked for first: a further
// step costs as much as a wrong guess of a branch does. Does not own what it finds. Not
// thread-safe.
template <class Page, std::size_t kSlotsPerPage = 16>
class PageIndex {
 public:
  // Null: there is none.
  [[gnu::always_inline]] Page* Find(std::uint64_t number) const {
    for (std::size_t at = HomeOf(number);; at = Next(at)) {
      const Slot& slot = slots_[at];
      if (slot.number == number || slot.page == nullptr) [[likely]]
        return slot.page;
    }
  }

  // A hint that Find(number) comes soon.
  [[gnu::always_inline]] void Prefetch(std::uint64_t number) const {
    __builtin_prefetch(&slots_[HomeOf(number)]);
  }

  // `number` < 2^64 - 1 must not be there yet; `page` is not null.
  void Insert(std::uint64_t number, Page* page) {
    if (kSlotsPerPage * ++size_ > slots_.size()) Grow();
    Put({number, page});
  }

  // `number` must be there.
  void Erase(std::uint64_t number) {
    std::size_t hole = HomeOf(number);
    while (slots_[hole].number != number) hole = Next(hole);
    // Those behind it that are not at home move up, so that no search ends at the hole.
    for (std::size_t at = Next(hole); slots_[at].page != nullptr; at = Next(at)) {
      const std::size_t from_home = (at - HomeOf(slots_[at].number)) & (slots_.size() - 1);
      const std::size_t from_hole = (at - hole) & (slots_.size() - 1);
      if (from_home < from_hole) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole] = {};
    --size_;
  }

 private:
  struct Slot {
    std::uint64_t number = ~std::uint64_t{0};
    Page* page = nullptr;  // null: free
  };
  static constexpr unsigned kFirstBits = 6;

  // Heaps and stacks lie at multiples of large powers of two, so all bits of the number count.
  [[gnu::always_inline]] std::size_t HomeOf(std::uint64_t number) const {
    return number * 0x9e3779b97f4a7c15u >> shift_;
  }
  std::size_t Next(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }

  void Put(const Slot& slot) {
    std::size_t at = HomeOf(slot.number);
    while (slots_[at].page != nullptr) at = Next(at);
    slots_[at] = slot;
  }

  void Grow() {
    const std::vector<Slot> smaller = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    --shift_;
    for (const Slot& slot : smaller) {
      if (slot.page != nullptr) Put(slot);
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(std::size_t{1} << kFirstBits);
  unsigned shift_ = 64 - kFirstBits;
  std::size_t size_ = 0;
};

}  // namespace trapline
