// How the program has used its words since tracking began: plainly, atomically, by a free. The
// compiler makes atomic loads and stores plain instructions: which ones they are, the word's other
// uses tell (detection.md, "What orders threads").
//
// A word is up to kWord bytes, known by the address of the first one; addresses are canonical
// (AddressSpace::Canonical). Guarded by Tracking's mutex.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "detector/event.h"
#include "detector/page_index.h"
#include "hypervisor/observer.h"
#include "hypervisor/page_bits.h"
#include "shadow-pages/address.h"

namespace trapline {

class WordUses {
 public:
  static constexpr std::uint64_t kWord = 8;

  // A bit for each word, by the address of its first byte.
  struct PageWords {
    explicit PageWords(std::uint64_t its_page) : page(its_page) {}

    std::uint64_t page;
    WordStartBits plainly_written;      // before any atomic instruction
    SparsePageBits atomic;              // by an atomic instruction, or one that debug info calls so
    SparsePageBits no_atomic_variable;  // debug info was asked
    std::vector<ThreadId> may_release;  // threads whose plain stores here may be atomic ones
  };
  // A page asked for lately.
  struct Page {
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};

    std::uint64_t page = kNone;
    PageWords* words = nullptr;  // null: nothing is known of them
    bool in_module = false;      // debug info may tell of variables here
    bool has_atomic = false;     // words->atomic.may_be_set(), which need not be asked for so
  };
  struct AtomicWord {
    static constexpr ThreadId kNobody = ~ThreadId{0};

    bool broken = false;  // plainly written by somebody else
    // Threads that did an exchange on it, as locks are taken, or may have, unseen; further ones are
    // in further_lockers_. Four take no more memory in a map than two: malloc rounds up.
    std::array<ThreadId, 4> lockers = {kNobody, kNobody, kNobody, kNobody};
  };

  // The observer is asked what debug info says.
  explicit WordUses(ExecutionObserver& observer) : observer_(observer) {}

  // The page of the address. The reference is good until another page is asked for.
  Page& PageOf(std::uint64_t address) {
    const std::uint64_t page = AlignDown(address, kPageSize);
    Page& cached = cached_pages_[CachedAt(address)];
    if (cached.page != page) [[unlikely]]
      FillPage(cached, page);
    return cached;
  }
  // Hints, with some time between one and the next, that the word is looked for, or plainly
  // written, soon.
  void PrefetchPage(std::uint64_t word) const {
    if (cached_pages_[CachedAt(word)].page != AlignDown(word, kPageSize))
      words_.Prefetch(word / kPageSize);
  }
  void PrefetchWords(std::uint64_t word) const {
    const Page& cached = cached_pages_[CachedAt(word)];
    const bool known = cached.page == AlignDown(word, kPageSize);
    const PageWords* const words = known ? cached.words : words_.Find(word / kPageSize);
    if (words == nullptr) return;
    words->plainly_written.Prefetch(word % kPageSize);
    if (!known) __builtin_prefetch(&words->atomic);
  }
  // For accesses only: asks for the page. Whether there are words nearby that atomic operations
  // have used.
  bool PrefetchAtomic(std::uint64_t word) {
    const Page& page = PageOf(word);
    if (page.has_atomic) page.words->atomic.Prefetch(word % kPageSize);
    return page.has_atomic;
  }
  // What is known of the words of the page at this address; null: nothing.
  PageWords* Find(std::uint64_t page) const { return words_.Find(page / kPageSize); }

  // Whether nothing is known that could make more of the plain access on `page`, a load of kWord
  // bytes perhaps, than that. False also if debug info has not been asked.
  static bool IsSurelyPlain(const Page& page, std::uint64_t address, bool write) {
    const PageWords* const words = page.words;
    if (!page.has_atomic && !page.in_module) return true;
    if (words == nullptr) return false;
    const std::size_t offset = address % kPageSize;
    const std::size_t second = (offset + kWord / 2) % kPageSize;  // of a load of eight bytes
    return !((page.in_module && !words->no_atomic_variable.test(offset)) ||
             words->atomic.test(offset) || (!write && words->atomic.test(second)));
  }
  // Whether the word on `page` has been used by an atomic operation.
  static bool IsAtomic(const Page& page, std::uint64_t word) {
    return page.has_atomic && page.words->atomic.test(word % kPageSize);
  }
  // Whether debug info says that the bytes are of an atomic variable.
  bool IsAtomicVariable(std::uint64_t address, std::uint64_t size) {
    Page& page = PageOf(address);
    return page.in_module && AskIfAtomicVariable(page, address, size);
  }
  // Whether a plain load of `size` bytes is an atomic one because of the word's other uses.
  bool IsReadAtomically(std::uint64_t word, std::uint64_t size);
  // The kernel clears the word when a thread ends.
  bool IsClearedByKernel(std::uint64_t word) const {
    return !cleared_by_kernel_.empty() && cleared_by_kernel_.contains(word);
  }
  // Whether the word was plainly written before any atomic operation, by its block's free if by
  // nothing else.
  bool WasPlainlyWritten(std::uint64_t word);
  // What is known of a word that IsAtomic.
  AtomicWord& AtomicUse(std::uint64_t word) { return atomic_words_[word]; }
  // Whether the thread did an exchange on the word, whose use this is, or may have, unseen.
  bool IsLocker(std::uint64_t word, const AtomicWord& use, ThreadId thread) const;

  // `page` is that of the word.
  void NotePlainWrite(Page& page, std::uint64_t word) {
    WordsOf(page).plainly_written.set(word % kPageSize);
  }
  // False: that was known.
  bool NoteAtomic(std::uint64_t word) {
    Page& page = PageOf(word);
    if (IsAtomic(page, word)) return false;
    SetAtomic(page, word);
    return true;
  }
  // The thread takes a lock there perhaps.
  void NoteExchange(std::uint64_t word, ThreadId thread);
  // The thread may take locks anywhere in [start, end) from now on without being seen.
  void NoteUnseenExchanges(std::uint64_t start, std::uint64_t end, ThreadId thread);
  // The thread's plain store there may be an atomic one.
  void NoteMayRelease(std::uint64_t address, ThreadId thread);
  void NoteClearedByKernel(std::uint64_t word) { cleared_by_kernel_.insert(word); }
  // The block [start, end) has been given back, which counts as a write until it is given out again
  // (Forget).
  void NoteFree(std::uint64_t start, std::uint64_t end) { freed_[start] = end; }

  // [start, end) is another thing from now on.
  void Forget(std::uint64_t start, std::uint64_t end);
  // What is known of the words at `from` is so of those at `to`.
  void Copy(std::uint64_t from, std::uint64_t to, std::uint64_t size);
  // Files may be mapped elsewhere by now.
  void OnMappingsChanged() { cached_pages_ = {}; }
  // Nothing has been used.
  void Clear();

 private:
  static std::size_t CachedAt(std::uint64_t address) { return address / kPageSize % kCachedPages; }
  void FillPage(Page& cached, std::uint64_t page);
  // Asks debug info unless it has denied it before.
  bool AskIfAtomicVariable(Page& page, std::uint64_t address, std::uint64_t size);
  PageWords& WordsOf(Page& page) {
    if (page.words == nullptr) [[unlikely]]
      AddWords(page);
    return *page.words;
  }
  void AddWords(Page& page);
  void SetAtomic(Page& page, std::uint64_t word) {
    WordsOf(page).atomic.set(word % kPageSize);
    page.has_atomic = true;
  }
  // Calls visit(page, PageWords&) for the pages of [start, end) of which something is known.
  template <class Visit>
  void ForEachPage(std::uint64_t start, std::uint64_t end, Visit&& visit) {
    if (end - start > all_words_.size() * kPageSize) {
      for (const auto& words : all_words_) {
        if (words->page < end && words->page + kPageSize > start) visit(words->page, *words);
      }
      return;
    }
    for (std::uint64_t page = AlignDown(start, kPageSize); page < end; page += kPageSize) {
      if (PageWords* const words = Find(page)) visit(page, *words);
    }
  }
  bool IsFreed(std::uint64_t word) const;

  ExecutionObserver& observer_;
  std::vector<std::unique_ptr<PageWords>> all_words_;
  PageIndex<PageWords, 2> words_;                               // by number of the page
  std::unordered_map<std::uint64_t, AtomicWord> atomic_words_;  // by address
  std::unordered_map<std::uint64_t, std::vector<ThreadId>> further_lockers_;
  static constexpr std::size_t kCachedPages = 1024;  // by the low bits of their numbers
  std::array<Page, kCachedPages> cached_pages_;
  std::map<std::uint64_t, std::uint64_t> freed_;  // blocks whose free counts as a write: ends
  std::unordered_set<std::uint64_t> cleared_by_kernel_;
};

}  // namespace trapline
