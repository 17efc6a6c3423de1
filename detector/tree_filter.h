// TREE: drops accesses that cannot add a race between new program locations, before any detector
// (trace redundant event elimination; chapter 3 of the TREE and RDIT thesis).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "detector/barrier_rounds.h"
#include "detector/detector.h"
#include "detector/hash.h"
#include "detector/lockset.h"

namespace trapline {

enum class TreeMode : std::uint8_t {
  // Algorithms 1 and 2: an access is redundant if one concurrentially equivalent access of the same
  // thread, or
  // two of different threads, went through. Equivalent means: same instruction, kind and bytes,
  // same lockset,
  // same messages sent and received. Locks are no messages, so pairs that only a detector with lock
  // edges tells
  // apart may be lost; and of three equivalent threads the third is dropped, which is wrong if
  // later only the
  // other two are joined.
  kThesis,
  // kThesis, and accesses to bytes already accessed in the same way since the thread's last
  // outgoing edge,
  // from whatever instruction (section 3.6). Keeps the first race of each location only.
  kSpans,
  // Only equivalent accesses of the same thread, with lock releases counting as messages: no pair
  // is lost for
  // any detector.
  kExact,
};

// Forwards all but redundant plain accesses to `inner`.
class TreeFilter final : public Detector {
 public:
  TreeFilter(std::unique_ptr<Detector> inner, TreeMode mode);

  void OnEvent(const Event& event, std::uint64_t index) override;
  void OnEvents(std::span<const Event> events, std::uint64_t first_index) override;
  void SetOrderingRule(const OrderingRule& rule) override { inner_->SetOrderingRule(rule); }
  void Finish() override { inner_->Finish(); }
  std::span<const Race> races() const override { return inner_->races(); }
  std::uint64_t race_count() const override { return inner_->race_count(); }
  // TREE's share of skipped accesses, then the inner detector's own.
  std::vector<Statistic> statistics() const override;
  // "tree+fasttrack"
  std::string_view name() const override { return name_; }

  // Whether TREE drops this event; follows it as OnEvent does but forwards nothing.
  bool IsRedundant(const Event& event);

 private:
  // Γ_t without the locks: a node of the trie of message histories, by number; 0 = nothing yet.
  using History = std::uint64_t;

  // Numbers for pairs of numbers.
  class Interned {
   public:
    explicit Interned(std::uint64_t first) : next_(first) {}
    std::uint64_t NumberOf(std::uint64_t a, std::uint64_t b) {
      const auto [place, is_new] = numbers_.try_emplace({a, b}, next_);
      if (is_new) ++next_;
      return place->second;
    }

   private:
    struct Hash {
      std::size_t operator()(const std::pair<std::uint64_t, std::uint64_t>& pair) const {
        return HashOf(pair.first, pair.second);
      }
    };
    std::unordered_map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t, Hash> numbers_;
    std::uint64_t next_;
  };

  struct ThreadState {
    History history = 0;
    std::uint64_t last = 0;  // what was appended to the history last
    // Messages that a thread sends without an access or a received message in between tell the
    // same, so they are one: the number of the last one, 0 = the next is a new one.
    std::uint64_t message = 0;
    std::uint64_t span = 1;  // outgoing edges so far, lock releases included
    bool known = false;
  };
  // Everything that two equivalent accesses have in common.
  struct Context {
    std::uint64_t ip, address, size;
    LocksetId any, exclusive;
    History history;
    EventKind kind;
    friend bool operator==(const Context&, const Context&) = default;
  };
  struct ContextHash {
    std::size_t operator()(const Context& context) const;
  };
  // The bounded stack of Algorithm 2: threads that have been seen in a context.
  struct Seen {
    static constexpr int kDepth = 2;
    ThreadId threads[kDepth] = {};
    int count = 0;
  };
  struct SpanKey {
    std::uint64_t address, size;
    ThreadId thread;
    EventKind kind;
    friend bool operator==(const SpanKey&, const SpanKey&) = default;
  };
  struct SpanHash {
    std::size_t operator()(const SpanKey& key) const;
  };
  // Θ for the accesses to one page, so that cleared memory can be forgotten.
  struct Page {
    std::unordered_map<Context, Seen, ContextHash> contexts;
    std::unordered_map<SpanKey, std::uint64_t, SpanHash> spans;
  };

  bool DetectRedundancy(const Event& event);
  bool InSameSpan(const Event& event, Page* page);
  void Follow(const Event& event);
  ThreadState& StateOf(ThreadId thread);
  // SND: the number of the message that `thread` sends.
  std::uint64_t Send(ThreadId thread);
  // RCV
  void Receive(ThreadId thread, std::uint64_t message);
  void AppendToHistory(ThreadState* state, std::uint64_t entry);
  void FollowAtomic(const Event& event);
  void FollowBarrier(const Event& event);
  void Forget(std::uint64_t address, std::uint64_t size);

  std::unique_ptr<Detector> inner_;
  TreeMode mode_;
  std::string name_;
  LocksetTable locksets_;
  HeldLocks held_{&locksets_};
  BarrierRounds rounds_;
  std::vector<ThreadState> threads_;
  std::uint64_t messages_ = 0;           // sent so far
  std::uint64_t atomic_generation_ = 0;  // changes when atomic memory is cleared or copied
  Interned histories_{1};                // history and message -> longer history
  Interned receptions_{1};               // atomic release and address -> message
  std::unordered_map<std::uint64_t, std::uint64_t> key_messages_;     // of happens-before keys
  std::unordered_map<std::uint64_t, std::uint64_t> atomic_messages_;  // of 8-byte words
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, std::uint64_t>>
      barrier_messages_;  // of barriers and rounds
  std::unordered_map<std::uint64_t, Page> pages_;
  std::uint64_t accesses_ = 0;
  std::uint64_t skipped_ = 0;
};

}  // namespace trapline
