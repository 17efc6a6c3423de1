// Trapline's header for programs. This program is its own agent: it answers getauxval.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "guest-agent/events.h"
#include "guest-agent/include/trapline/client.h"

namespace {

using ::testing::ElementsAre;

struct Seen {
  std::uint64_t kind;
  std::uint64_t address;
  std::uint64_t size;
  std::uint64_t ip;
};
std::vector<Seen> seen;

const trapline_agent_interface kAgent = {
    TRAPLINE_AGENT_INTERFACE_VERSION,
    sizeof(trapline_agent_interface),
    [](std::uint64_t kind, std::uint64_t address, std::uint64_t size, std::uint64_t ip) {
      seen.push_back({kind, address, size, ip});
    },
    [](std::uint64_t kind, std::uint64_t address, std::uint64_t size, std::uint64_t other,
       std::uint64_t) {
      seen.push_back({kind, address, size, other});
    },
    nullptr,
    nullptr};

}  // namespace

extern "C" {
unsigned long getauxval(unsigned long type) noexcept {
  return type == TRAPLINE_AT_AGENT ? reinterpret_cast<unsigned long>(&kAgent) : 0;
}
// header_c.c: the same header in C.
int header_c_running();
void header_c_report(const void* key);
}

namespace {

TEST(Header, AgreesWithTheAgentsInterface) {
  static_assert(TRAPLINE_CLIENT_AUXV == TRAPLINE_AT_AGENT);
  static_assert(TRAPLINE_CLIENT_VERSION == TRAPLINE_AGENT_INTERFACE_VERSION);
  static_assert(offsetof(trapline_client_interface, version) ==
                offsetof(trapline_agent_interface, version));
  static_assert(offsetof(trapline_client_interface, event) ==
                offsetof(trapline_agent_interface, event));
  static_assert(offsetof(trapline_client_interface, request) ==
                offsetof(trapline_agent_interface, access));
  static_assert(sizeof(trapline_history_move) == sizeof(trapline_history_copy));
  static_assert(offsetof(trapline_history_move, from) == offsetof(trapline_history_copy, from));
  static_assert(offsetof(trapline_history_move, to) == offsetof(trapline_history_copy, to));
  EXPECT_TRUE(trapline_running());
}

struct Case {
  void (*call)();
  std::uint64_t kind;
  std::uint64_t size;
};

std::array<char, 32> object;

TEST(Header, EveryFunctionReportsItsEvent) {
  static char name[] = "name";
  const Case cases[] = {
      {[] { trapline_happens_before(&object); }, TRAPLINE_HAPPENS_BEFORE, 0},
      {[] { trapline_happens_after(&object); }, TRAPLINE_HAPPENS_AFTER, 0},
      {[] { trapline_lock_acquired(&object); }, TRAPLINE_ACQUIRE, TRAPLINE_LOCK_ANNOTATED},
      {[] { trapline_lock_releasing(&object); }, TRAPLINE_RELEASE, TRAPLINE_LOCK_ANNOTATED},
      {[] { trapline_shared_lock_acquired(&object); }, TRAPLINE_ACQUIRE_SHARED,
       TRAPLINE_LOCK_ANNOTATED},
      {[] { trapline_shared_lock_releasing(&object); }, TRAPLINE_RELEASE_SHARED,
       TRAPLINE_LOCK_ANNOTATED},
      {[] { trapline_barrier_enter(&object, 3); }, TRAPLINE_BARRIER_ENTER, 3},
      {[] { trapline_barrier_leave(&object, 3); }, TRAPLINE_BARRIER_LEAVE, 3},
      {[] { trapline_sync_destroyed(&object); }, TRAPLINE_SYNC_DESTROYED, 0},
      {[] { trapline_allocated(&object, 32); }, TRAPLINE_ALLOCATE, 32},
      {[] { trapline_freeing(&object, 32); }, TRAPLINE_FREE, 32},
      {[] { trapline_clear_history(&object, 31); }, TRAPLINE_CLEAR_HISTORY, 31},
      {[] { trapline_benign_race(&object, 30); }, TRAPLINE_BENIGN_RACE, 30},
      {[] { trapline_untrack(&object, 29); }, TRAPLINE_UNTRACK, 29},
      {[] { trapline_track(&object, 29); }, TRAPLINE_TRACK, 29},
      {[] { trapline_fiber_create(&object); }, TRAPLINE_FIBER_CREATE, 0},
      {[] { trapline_fiber_destroy(&object); }, TRAPLINE_FIBER_DESTROY, 0},
  };
  for (const Case& one : cases) {
    seen.clear();
    one.call();
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].kind, one.kind);
    EXPECT_EQ(seen[0].address, reinterpret_cast<std::uint64_t>(&object));
    EXPECT_EQ(seen[0].size, one.size);
    // From the function that called it, which is small.
    EXPECT_LT(seen[0].ip - reinterpret_cast<std::uint64_t>(one.call), 128U);
  }
  seen.clear();
  trapline_ignore_begin(TRAPLINE_READS);
  trapline_ignore_end(TRAPLINE_READS);
  trapline_ignore_begin(TRAPLINE_READS_AND_WRITES);
  trapline_ignore_end(TRAPLINE_READS_AND_WRITES);
  trapline_ignore_sync_begin();
  trapline_ignore_sync_end();
  trapline_thread_name(name);
  std::vector<std::uint64_t> kinds;
  kinds.reserve(seen.size());
  for (const Seen& one : seen) kinds.push_back(one.kind);
  EXPECT_THAT(kinds, ElementsAre(TRAPLINE_IGNORE_BEGIN, TRAPLINE_IGNORE_END, TRAPLINE_IGNORE_BEGIN,
                                 TRAPLINE_IGNORE_END, TRAPLINE_IGNORE_SYNC_BEGIN,
                                 TRAPLINE_IGNORE_SYNC_END, TRAPLINE_THREAD_NAME));
  EXPECT_EQ(seen[0].size, 1U);
  EXPECT_EQ(seen[2].size, 3U);
  EXPECT_EQ(seen[6].address, reinterpret_cast<std::uint64_t>(name));
}

TEST(Header, WhatTakesEffectAtOnce) {
  const auto address = [](const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); };
  seen.clear();
  trapline_copy_history(&object[1], &object[2], 9);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].kind, TRAPLINE_COPY_HISTORY);
  EXPECT_EQ(seen[0].address, address(&object[2]));
  EXPECT_EQ(seen[0].size, 9U);
  EXPECT_EQ(seen[0].ip, address(&object[1]));
  seen.clear();
  const std::array<trapline_history_move, 2> moves{};
  trapline_copy_histories(moves.data(), moves.size());
  trapline_happens_after_all();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].kind, TRAPLINE_COPY_HISTORIES);
  EXPECT_EQ(seen[0].address, address(moves.data()));
  EXPECT_EQ(seen[0].size, 2U);
  EXPECT_EQ(seen[1].kind, TRAPLINE_AFTER_ALL);
}

TEST(Header, SwitchesSayWhereTheStackIs) {
  seen.clear();
  const char here = 0;
  trapline_fiber_switch(&object);
  trapline_fiber_switch_ordered(nullptr);
  ASSERT_EQ(seen.size(), 2U);
  for (const Seen& one : seen) {
    EXPECT_EQ(one.kind, TRAPLINE_FIBER_SWITCH);
    // This function's frame.
    const std::uint64_t above = reinterpret_cast<std::uint64_t>(&here) - (one.size >> 16);
    EXPECT_LT(above, (one.size >> 1 & 0x7fff) * 8);
    EXPECT_LT((one.size >> 1 & 0x7fff) * 8, 65536U);
  }
  EXPECT_EQ(seen[0].address, reinterpret_cast<std::uint64_t>(&object));
  EXPECT_EQ(seen[0].size % 2, 0U);
  EXPECT_EQ(seen[1].address, 0U);
  EXPECT_EQ(seen[1].size % 2, 1U);
}

TEST(Header, NamesOfFibersAreCutAtFifteenBytes) {
  seen.clear();
  trapline_fiber_name(&object, "a name of seventeen");
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].kind, TRAPLINE_FIBER_NAME);
  std::array<char, 16> name{};
  std::memcpy(name.data(), &seen[0].size, 8);
  std::memcpy(name.data() + 8, &seen[0].ip, 8);
  EXPECT_STREQ(name.data(), "a name of seven");
}

TEST(Header, InC) {
  seen.clear();
  EXPECT_TRUE(header_c_running());
  header_c_report(&object);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].kind, TRAPLINE_HAPPENS_BEFORE);
}

}  // namespace
