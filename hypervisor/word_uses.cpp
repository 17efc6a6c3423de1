#include "hypervisor/word_uses.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace trapline {

bool WordUses::AskIfAtomicVariable(Page& page, std::uint64_t address, std::uint64_t size) {
  const std::size_t offset = address % kPageSize;
  if (page.words != nullptr && page.words->no_atomic_variable.test(offset)) return false;
  if (observer_.IsAtomicVariable(address, size)) return true;
  if (observer_.IsAtomicVariable(address, 1)) return false;  // for this one
  WordsOf(page).no_atomic_variable.set(offset);
  return false;
}

bool WordUses::IsReadAtomically(std::uint64_t word, std::uint64_t size) {
  if (size > kWord) return false;
  if (IsClearedByKernel(word)) return true;
  const Page& page = PageOf(word);
  if (!page.has_atomic) return false;
  const std::size_t offset = word % kPageSize;
  const bool known_atomic = page.words->atomic.test(offset);
  // Two counts of four bytes may be read at once, as shared_ptr's are, and the second one be the
  // one that is atomic.
  constexpr std::uint64_t kHalf = kWord / 2;
  const bool second_half = !known_atomic && size == kWord && offset + kHalf < kPageSize &&
                           page.words->atomic.test(offset + kHalf);
  if (!known_atomic && !second_half) return false;
  const auto use = atomic_words_.find(second_half ? word + kHalf : word);
  return use == atomic_words_.end() || !use->second.broken;
}

bool WordUses::WasPlainlyWritten(std::uint64_t word) {
  const Page& page = PageOf(word);
  return (page.words != nullptr && page.words->plainly_written.test(word % kPageSize)) ||
         IsFreed(word);
}

void WordUses::NoteExchange(std::uint64_t word, ThreadId thread) {
  AtomicWord& use = atomic_words_[word];
  if (IsLocker(word, use, thread)) return;
  const auto room = std::ranges::find(use.lockers, AtomicWord::kNobody);
  if (room != use.lockers.end()) {
    *room = thread;
  } else {
    further_lockers_[word].push_back(thread);
  }
}

bool WordUses::IsLocker(std::uint64_t word, const AtomicWord& use, ThreadId thread) const {
  if (std::ranges::find(use.lockers, thread) != use.lockers.end()) return true;
  if (use.lockers.back() == AtomicWord::kNobody) return false;
  const auto further = further_lockers_.find(word);
  return further != further_lockers_.end() &&
         std::ranges::find(further->second, thread) != further->second.end();
}

void WordUses::NoteUnseenExchanges(std::uint64_t start, std::uint64_t end, ThreadId thread) {
  ForEachPage(start, end, [&](std::uint64_t page, const PageWords& words) {
    words.atomic.ForEach(std::max(start, page) - page, std::min(end, page + kPageSize) - page,
                         [&](std::uint64_t at) { NoteExchange(page + at, thread); });
  });
}

void WordUses::NoteMayRelease(std::uint64_t address, ThreadId thread) {
  auto& writers = WordsOf(PageOf(address)).may_release;
  if (std::find(writers.begin(), writers.end(), thread) == writers.end()) writers.push_back(thread);
}

void WordUses::Forget(std::uint64_t start, std::uint64_t end) {
  auto freed = freed_.lower_bound(start);
  if (freed != freed_.begin() && std::prev(freed)->second > start) --freed;
  while (freed != freed_.end() && freed->first < end) freed = freed_.erase(freed);
  const auto forget = [&](std::uint64_t page, PageWords& words) {
    const std::uint64_t last = std::min(end, page + kPageSize);
    const std::uint64_t from = std::max(start, page) - page, to = last - page;
    words.plainly_written.Clear(from, to);
    words.no_atomic_variable.Clear(from, to);
    words.atomic.ForEach(from, to, [&](std::uint64_t at) {
      atomic_words_.erase(page + at);
      further_lockers_.erase(page + at);
    });
    words.atomic.Clear(from, to);
  };
  ForEachPage(start, end, forget);
}

void WordUses::Copy(std::uint64_t from, std::uint64_t to, std::uint64_t size) {
  struct Known {
    std::uint64_t offset;
    bool plainly_written;
    std::optional<AtomicWord> atomic;
    std::vector<ThreadId> further_lockers;
  };
  std::vector<Known> known;
  const auto note = [&](std::uint64_t page, const PageWords& words) {
    const std::uint64_t end = std::min(from + size, page + kPageSize);
    for (std::uint64_t at = std::max(from, page); at < end; ++at) {
      const bool atomic = words.atomic.test(at - page);
      if (!atomic && !words.plainly_written.test(at - page)) continue;
      Known word{at - from, words.plainly_written.test(at - page), std::nullopt, {}};
      if (atomic) {
        const auto use = atomic_words_.find(at);
        word.atomic = use != atomic_words_.end() ? use->second : AtomicWord{};
        const auto further = further_lockers_.find(at);
        if (further != further_lockers_.end()) word.further_lockers = further->second;
      }
      known.push_back(std::move(word));
    }
  };
  ForEachPage(from, from + size, note);
  Forget(to, to + size);
  for (Known& word : known) {
    const std::uint64_t at = to + word.offset;
    Page& page = PageOf(at);
    WordsOf(page).plainly_written.set(at % kPageSize, word.plainly_written);
    if (!word.atomic) continue;
    SetAtomic(page, at);
    atomic_words_.insert_or_assign(at, *word.atomic);
    if (!word.further_lockers.empty()) further_lockers_[at] = std::move(word.further_lockers);
  }
}

void WordUses::Clear() {
  words_ = {};
  all_words_.clear();
  atomic_words_.clear();
  further_lockers_.clear();
  cached_pages_ = {};
  freed_.clear();
  cleared_by_kernel_.clear();
}

[[gnu::noinline]] void WordUses::FillPage(Page& cached, std::uint64_t page) {
  PageWords* const words = Find(page);
  cached = {page, words, observer_.IsInModule(page),
            words != nullptr && words->atomic.may_be_set()};
}

[[gnu::noinline]] void WordUses::AddWords(Page& page) {
  page.words = all_words_.emplace_back(std::make_unique<PageWords>(page.page)).get();
  words_.Insert(page.page / kPageSize, page.words);
}

// Whether the word lies in a block that was given back and not given out again.
bool WordUses::IsFreed(std::uint64_t word) const {
  const auto after = freed_.upper_bound(word);
  return after != freed_.begin() && word < std::prev(after)->second;
}

}  // namespace trapline
