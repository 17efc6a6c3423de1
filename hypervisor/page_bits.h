// Bits for the bytes of a page.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "shadow-pages/address.h"

namespace trapline {

// So many bits, all zero at first. Not thread-safe.
template <std::size_t kSize>
class BitArray {
 public:
  bool test(std::uint64_t at) const { return (words_[at / kBits] >> at % kBits & 1) != 0; }
  void set(std::uint64_t at) { words_[at / kBits] |= std::uint64_t{1} << at % kBits; }

  // A hint that `at` is asked for or set soon.
  void Prefetch(std::uint64_t at) const { __builtin_prefetch(&words_[at / kBits], 1); }

  void Clear(std::uint64_t first, std::uint64_t end) {
    ForEachWord(first, end,
                [](std::uint64_t& word, std::uint64_t mask, std::uint64_t) { word &= ~mask; });
  }

  // Calls visit(at) for each bit of [first, end) that is set, ascending. It may clear that bit.
  template <class Visit>
  void ForEach(std::uint64_t first, std::uint64_t end, Visit&& visit) {
    ForEachWord(first, end, [&](std::uint64_t word, std::uint64_t mask, std::uint64_t base) {
      for (word &= mask; word != 0; word &= word - 1)
        visit(base + static_cast<unsigned>(std::countr_zero(word)));
    });
  }

 private:
  static constexpr unsigned kBits = 64;

  // Calls visit(word, bits of it in the range, offset of its first bit).
  template <class Visit>
  void ForEachWord(std::uint64_t first, std::uint64_t end, Visit&& visit) {
    while (first < end) {
      const std::uint64_t base = first - first % kBits;
      const std::uint64_t next = std::min<std::uint64_t>(base + kBits, end);
      visit(words_[first / kBits], ~std::uint64_t{0} >> (kBits - (next - first)) << first % kBits,
            base);
      first = next;
    }
  }

  std::array<std::uint64_t, kSize / kBits> words_{};
};

// One for each byte of a page, by its offset.
using PageBits = BitArray<kPageSize>;

// The same where most pages have no bit that is set: then it takes no memory.
class SparsePageBits {
 public:
  // False: none is set.
  bool may_be_set() const { return bits_ != nullptr; }
  // A hint that `at` is asked for soon. Only if may_be_set().
  void Prefetch(std::uint64_t at) const { bits_->Prefetch(at); }
  bool test(std::uint64_t at) const { return bits_ != nullptr && bits_->test(at); }
  void set(std::uint64_t at) {
    if (bits_ == nullptr) bits_ = std::make_unique<PageBits>();
    bits_->set(at);
  }
  void Clear(std::uint64_t first, std::uint64_t end) {
    if (bits_ != nullptr) bits_->Clear(first, end);
  }
  template <class Visit>
  void ForEach(std::uint64_t first, std::uint64_t end, Visit&& visit) const {
    if (bits_ != nullptr) bits_->ForEach(first, end, std::forward<Visit>(visit));
  }

 private:
  std::unique_ptr<PageBits> bits_;
};

// The same where most of those that are set are at multiples of 4, as the first bytes of words are:
// then it takes 128 bytes.
class WordStartBits {
 public:
  bool test(std::uint64_t at) const {
    return at % kUnit == 0 ? aligned_.test(at / kUnit) : others_.test(at);
  }
  void set(std::uint64_t at) { at % kUnit == 0 ? aligned_.set(at / kUnit) : others_.set(at); }
  void set(std::uint64_t at, bool value) { value ? set(at) : Clear(at, at + 1); }
  void Clear(std::uint64_t first, std::uint64_t end) {
    aligned_.Clear((first + kUnit - 1) / kUnit, (end + kUnit - 1) / kUnit);
    others_.Clear(first, end);
  }
  void Prefetch(std::uint64_t at) const { aligned_.Prefetch(at / kUnit); }

 private:
  static constexpr std::uint64_t kUnit = 4;

  BitArray<kPageSize / kUnit> aligned_;
  SparsePageBits others_;
};

}  // namespace trapline
