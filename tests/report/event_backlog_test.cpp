// Batches that others may hand on: each once, in order, one at a time.
#include "tools/event_backlog.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

namespace trapline {
namespace {

std::vector<Event> Batch(std::uint64_t first, std::size_t size) {
  std::vector<Event> batch(size);
  for (std::size_t i = 0; i < size; ++i) batch[i].address = first + i;
  return batch;
}

TEST(EventBacklog, WithoutHelpersFeedsAtOnce) {
  std::vector<std::uint64_t> fed;
  EventBacklog backlog([&](std::span<const Event> events) {
    for (const Event& event : events) fed.push_back(event.address);
  });
  EXPECT_TRUE(backlog.Add(Batch(0, 2)));
  EXPECT_EQ(fed, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_TRUE(backlog.Add(Batch(2, 1)));
  EXPECT_EQ(fed, (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_FALSE(backlog.Finish());
  backlog.Alone([&] { fed.clear(); });
  EXPECT_TRUE(fed.empty());
}

TEST(EventBacklog, ShortBatchesAreNotHandedOver) {
  std::atomic<bool> helps = false, over = false;
  EventBacklog backlog([](std::span<const Event>) {});
  std::thread helper([&] {
    backlog.HelpUntil([&] {
      helps = true;
      return over.load();
    });
  });
  while (!helps) std::this_thread::yield();
  EXPECT_TRUE(backlog.Add(Batch(0, 2)));
  EXPECT_FALSE(backlog.Add(Batch(2, 1000)));
  backlog.Finish();
  EXPECT_TRUE(backlog.Add(Batch(1002, 2)));
  over = true;
  backlog.Wake();
  helper.join();
}

TEST(EventBacklog, HelpersKeepTheOrder) {
  constexpr std::uint64_t kRounds = 200;
  std::mt19937 random(1);
  std::atomic<int> feeding = 0;
  std::atomic<bool> owner_works = false, open = false, over = false;
  std::uint64_t next = 0, out_of_order = 0, together = 0, not_alone = 0, alone = 0;
  std::atomic<std::uint64_t> helped = 0;
  std::thread::id owner = std::this_thread::get_id();
  EventBacklog* to_help = nullptr;
  EventBacklog backlog([&](std::span<const Event> events) {
    if (++feeding != 1) ++together;
    for (const Event& event : events) {
      if (event.address != next++) ++out_of_order;
      if (event.address % 97 != 0) continue;
      to_help->Alone([&] {
        ++alone;
        if (owner_works) ++not_alone;
      });
    }
    if (std::this_thread::get_id() != owner) ++helped;
    --feeding;
  });
  to_help = &backlog;
  std::array<std::thread, 3> helpers;
  for (std::thread& helper : helpers) {
    helper = std::thread([&] {
      while (!over) {
        if (open) backlog.HelpUntil([&] { return !open; });
        std::this_thread::yield();
      }
    });
  }
  std::uint64_t added = 0;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    open = true;
    const std::size_t batches = random() % 200;
    for (std::size_t i = 0; i < batches; ++i) {
      const std::size_t size = 1 + random() % 150;  // long and short ones
      owner_works = true;
      const std::vector<Event> batch = Batch(added, size);
      if (random() % 20 == 0) std::this_thread::yield();
      owner_works = false;
      if (backlog.Add(batch)) {
        EXPECT_EQ(next, added + size);
      }
      added += size;
      if (random() % 50 == 0) {
        backlog.Finish();
        EXPECT_EQ(next, added);
      }
    }
    if (round % 3 == 0) {  // the last batches may be fed while helpers leave
      open = false;
      backlog.Wake();
    }
    backlog.Finish();
    ASSERT_EQ(next, added);
    open = false;
    backlog.Wake();
  }
  over = true;
  for (std::thread& helper : helpers) helper.join();
  EXPECT_EQ(out_of_order, 0U);
  EXPECT_EQ(together, 0U);
  EXPECT_EQ(not_alone, 0U);
  EXPECT_GT(alone, 0U);
  EXPECT_GT(helped, 0U) << "nobody helped: the test shows nothing";
}

}  // namespace
}  // namespace trapline
