// The circumstances in which accesses are made, as numbers that events can carry: call stacks, sets
// of held locks, and both together with the modules that were loaded. Equal ones have one number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/intern_table.h"

namespace trapline {

struct HeldLock {
  std::uint64_t address = 0;  // 0: not kept (AccessContexts::kMostLockSets)
  std::uint64_t kind = 0;     // trapline_lock_kind
  bool shared = false;
  std::uint64_t ip = 0;
  friend bool operator==(const HeldLock&, const HeldLock&) = default;
};

struct AccessContext {
  std::uint32_t stack = 0;       // number of a call stack; 0: none
  std::uint32_t lock_set = 0;    // number of the locks that were held; 0: none
  std::uint32_t generation = 0;  // Modules::generation()
  friend bool operator==(const AccessContext&, const AccessContext&) = default;
};

// Not thread-safe. References are valid until the next change.
class AccessContexts {
 public:
  static constexpr std::size_t kDeepestStack = 64;  // frames
  // Of further sets, only where the locks were taken is kept: a program that has a lock for each of
  // its objects would have hundreds of thousands, and as many contexts.
  static constexpr std::size_t kMostLockSets = 1024;

  AccessContexts();

  std::size_t size() const { return contexts_.size(); }  // numbers are below it
  const AccessContext& operator[](std::uint32_t number) const { return contexts_[number]; }
  // Innermost first: the instruction, then return addresses.
  std::vector<std::uint64_t> stack(std::uint32_t number) const;
  const std::vector<HeldLock>& lock_set(std::uint32_t number) const { return lock_sets_[number]; }

  std::uint32_t AddLockSet(const std::vector<HeldLock>& locks) {
    if (lock_sets_.size() < kMostLockSets) return lock_sets_.Add(locks);
    const auto known = lock_sets_.Find(locks);
    return known ? *known : AddPlacesOf(locks);
  }
  // A call stack as its innermost frame: a call that returns to `return_address`, or the
  // instruction that is executed; `caller` is the number of the stack around it, 0: none is known.
  std::uint32_t AddFrame(std::uint32_t caller, std::uint64_t return_address) {
    return frames_.Add({caller, return_address});
  }
  // Without its frames up to the one that returns to `return_address`; 0 if there is none.
  std::uint32_t CallerOf(std::uint32_t stack, std::uint64_t return_address) const;

  // The frames from `stack` on without the innermost ones that return to where is_inside(address);
  // 0 if none is left.
  template <class IsInside>
  std::uint32_t Outside(std::uint32_t stack, IsInside&& is_inside) const {
    while (stack != 0 && is_inside(frames_[stack].return_address - 1))
      stack = frames_[stack].caller;
    return stack;
  }
  // Of a frame.
  std::uint64_t ReturnAddressOf(std::uint32_t stack) const { return frames_[stack].return_address; }
  std::uint32_t CallerOf(std::uint32_t stack) const { return frames_[stack].caller; }

  // `stack` as stack() has it.
  std::uint32_t Of(std::span<const std::uint64_t> stack, std::uint32_t lock_set,
                   std::uint32_t generation);
  // Of the instruction at `ip` in the frame of that number. The latest ones are found at once.
  [[gnu::always_inline]] std::uint32_t Of(std::uint64_t ip, std::uint32_t frame,
                                          std::uint32_t lock_set, std::uint32_t generation) {
    // The products do not wait for each other.
    const std::uint64_t hash =
        (ip + frame * 0xff51afd7ed558ccdull +
         (std::uint64_t{lock_set} << 32 | generation) * 0xc4ceb9fe1a85ec53ull) *
        0x9e3779b97f4a7c15ull;
    const std::size_t at = hash >> (64 - kCachedBits);
    const auto is_it = [&](const Cached& cached) {
      return cached.ip == ip && cached.frame == frame && cached.lock_set == lock_set &&
             cached.generation == generation;
    };
    if (is_it(cached_[at])) [[likely]]
      return cached_[at].number;
    if (is_it(cached_[at ^ 1])) return cached_[at ^ 1].number;
    cached_[at ^ 1] = cached_[at];
    return Make(cached_[at], ip, frame, lock_set, generation);
  }

 private:
  static constexpr int kCachedBits = 13;  // log2 of their number; 32 bytes each

  struct Frame {
    std::uint32_t caller = 0;
    std::uint64_t return_address = 0;
    friend bool operator==(const Frame&, const Frame&) = default;
  };
  struct LockSetHash {
    std::size_t operator()(const std::vector<HeldLock>& locks) const;
  };
  struct ContextHash {
    std::size_t operator()(const AccessContext& context) const;
  };
  struct FrameHash {
    std::size_t operator()(const Frame& frame) const;
  };
  // A context by what it was made of, so that it need not be made again to be found.
  struct alignas(32) Cached {
    std::uint32_t frame = 0, lock_set = 0, generation = 0, number = 0;
    std::uint64_t ip = 0;
  };

  std::uint32_t AddPlacesOf(const std::vector<HeldLock>& locks);
  std::uint32_t Make(Cached& cached, std::uint64_t ip, std::uint32_t frame, std::uint32_t lock_set,
                     std::uint32_t generation);

  InternTable<std::vector<HeldLock>, LockSetHash> lock_sets_;
  InternTable<AccessContext, ContextHash> contexts_;
  InternTable<Frame, FrameHash> frames_;
  std::vector<Cached> cached_;
  std::vector<HeldLock> places_;  // of AddPlacesOf, whose memory it saves
};

}  // namespace trapline
