// Call stacks, held locks and contexts by number.
#include "tools/access_contexts.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

namespace trapline {
namespace {

TEST(AccessContexts, TheSameStackFrameByFrameAndAtOnceHasOneNumber) {
  AccessContexts contexts;
  const std::uint32_t main = contexts.AddFrame(0, 0x100);
  const std::uint32_t caller = contexts.AddFrame(main, 0x200);
  const std::uint32_t by_frame = contexts.Of(0x300, caller, 0, 7);
  const std::array<std::uint64_t, 3> stack{0x300, 0x200, 0x100};
  EXPECT_EQ(contexts.Of(stack, 0, 7), by_frame);
  EXPECT_EQ(contexts.stack(contexts[by_frame].stack),
            (std::vector<std::uint64_t>{0x300, 0x200, 0x100}));
  EXPECT_EQ(contexts[by_frame].generation, 7U);
}

TEST(AccessContexts, LocksAndModulesTellContextsApart) {
  AccessContexts contexts;
  const std::vector<HeldLock> locks{{.address = 8, .kind = 0, .shared = false, .ip = 1}};
  std::vector<HeldLock> shared = locks;
  shared[0].shared = true;
  const std::uint32_t held = contexts.AddLockSet(locks);
  EXPECT_EQ(contexts.AddLockSet({}), 0U);
  EXPECT_EQ(contexts.AddLockSet(locks), held);
  EXPECT_NE(contexts.AddLockSet(shared), held);
  EXPECT_EQ(contexts.lock_set(held), locks);
  const std::uint32_t context = contexts.Of(0x300, 0, held, 1);
  EXPECT_EQ(contexts[context].lock_set, held);
  EXPECT_NE(contexts.Of(0x300, 0, 0, 1), context);
  EXPECT_NE(contexts.Of(0x300, 0, held, 2), context);
  EXPECT_EQ(contexts.Of(0x300, 0, held, 1), context);
}

TEST(AccessContexts, OfTooManyLockSetsOnlyThePlacesAreKept) {
  AccessContexts contexts;
  const auto set = [](std::uint64_t address, std::uint64_t ip) {
    return std::vector<HeldLock>{{.address = address, .kind = 0, .shared = false, .ip = ip}};
  };
  const std::uint32_t first = contexts.AddLockSet(set(8, 1));
  for (std::uint64_t i = 2; contexts.lock_set(contexts.AddLockSet(set(8 * i, 1)))[0].address != 0;
       ++i) {
    ASSERT_LE(i, AccessContexts::kMostLockSets);
  }
  EXPECT_EQ(contexts.AddLockSet(set(8, 1)), first);
  EXPECT_EQ(contexts.lock_set(first), set(8, 1));
  const std::uint32_t one = contexts.AddLockSet(set(1 << 20, 1));
  EXPECT_EQ(contexts.lock_set(one), set(0, 1));
  EXPECT_EQ(contexts.AddLockSet(set(2 << 20, 1)), one);
  EXPECT_EQ(contexts.lock_set(contexts.AddLockSet(set(2 << 20, 2))), set(0, 2));
}

TEST(AccessContexts, CallersFromTheCallThatReturnsThere) {
  AccessContexts contexts;
  const std::uint32_t main = contexts.AddFrame(0, 0x100);
  const std::uint32_t wrapper = contexts.AddFrame(main, 0x200);
  const std::uint32_t inner = contexts.AddFrame(wrapper, 0x300);
  EXPECT_EQ(contexts.CallerOf(inner, 0x200), main);
  EXPECT_EQ(contexts.CallerOf(inner, 0x300), wrapper);
  EXPECT_EQ(contexts.CallerOf(main, 0x100), 0U);
  EXPECT_EQ(contexts.CallerOf(inner, 0x999), 0U);
}

TEST(AccessContexts, DeepRecursionIsCutOff) {
  AccessContexts contexts;
  std::uint32_t frame = 0;
  for (std::uint64_t depth = 1; depth <= 1000; ++depth) frame = contexts.AddFrame(frame, depth);
  const std::vector<std::uint64_t> stack = contexts.stack(frame);
  ASSERT_EQ(stack.size(), AccessContexts::kDeepestStack);
  EXPECT_EQ(stack.front(), 1000U);
}

// More than are found at once, by turns.
TEST(AccessContexts, EachHasOneNumberForGood) {
  using Made = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  AccessContexts contexts;
  std::mt19937 random(1);
  std::vector<std::pair<Made, std::uint32_t>> made;
  for (std::uint64_t ip = 1; ip <= 40000; ++ip) {
    const Made parts{ip, static_cast<std::uint32_t>(random() % 4),
                     contexts.AddLockSet({{ip % 5, 0, false, 0}}),
                     static_cast<std::uint32_t>(random() % 2)};
    const auto [at, frame, locks, generation] = parts;
    made.emplace_back(parts, contexts.Of(at, frame, locks, generation));
  }
  EXPECT_EQ(contexts.size(), made.size() + 1);  // and the empty one
  for (int round = 0; round < 100000; ++round) {
    const auto& [parts, number] = made[random() % made.size()];
    const auto [ip, frame, locks, generation] = parts;
    ASSERT_EQ(contexts.Of(ip, frame, locks, generation), number) << "ip " << ip;
  }
}

}  // namespace
}  // namespace trapline
