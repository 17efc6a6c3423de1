// What the preload library reports of allocators' own functions, each of them.
#include "guest-agent/preload/allocators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "tests/preload/own_allocator.h"
#include "tests/preload/recorder.h"

namespace trapline::preload {
namespace {

[[maybe_unused]] const bool accesses_count = StartTracking();

using ::testing::ElementsAre;

Report Allocated(const void* block, std::size_t size) {
  return {TRAPLINE_ALLOCATE, block, size, NumberOfThisThread(), 0, 0};
}
Report Freed(const void* block) {
  return {TRAPLINE_FREE, block, kOwnBlock, NumberOfThisThread(), 0, 0};
}

std::vector<Report> Of(const std::function<void()>& call) {
  return Record(What::kAllocation, call);
}

// All different, and so are their products.
#define GIVE_ARGUMENTS [[maybe_unused]] std::size_t a = 2, b = 3, c = 5, d = 7, e = 11, f = 13
#define SIZE_OF(block) kOwnBlock

#define ALLOCATE(name, count, size)                                          \
  {                                                                          \
    GIVE_ARGUMENTS;                                                          \
    void* block = nullptr;                                                   \
    const auto reports = Of([&] { block = name(BLOCK_ARGUMENTS_##count); }); \
    EXPECT_THAT(reports, ElementsAre(Allocated(block, size))) << #name;      \
  }
#define FREE(name, count)                                                                        \
  {                                                                                              \
    GIVE_ARGUMENTS;                                                                              \
    static char block[kOwnBlock];                                                                \
    a = reinterpret_cast<std::size_t>(+block);                                                   \
    EXPECT_THAT(Of([&] { name(BLOCK_ARGUMENTS_##count); }), ElementsAre(Freed(block))) << #name; \
    a = 0;                                                                                       \
    EXPECT_THAT(Of([&] { name(BLOCK_ARGUMENTS_##count); }), ElementsAre()) << #name;             \
  }
#define REALLOCATE(name, count, old, size)                                                 \
  {                                                                                        \
    GIVE_ARGUMENTS;                                                                        \
    static char block[kOwnBlock];                                                          \
    old = reinterpret_cast<std::size_t>(+block);                                           \
    void* moved = nullptr;                                                                 \
    auto reports = Of([&] { moved = name(BLOCK_ARGUMENTS_##count); });                     \
    EXPECT_THAT(reports, ElementsAre(Freed(block), Allocated(moved, size))) << #name;      \
    b = b == 3 ? kMostBlock + 1 : b;                                                       \
    c = c == 5 ? kMostBlock + 1 : c;                                                       \
    reports = Of([&] { moved = name(BLOCK_ARGUMENTS_##count); });                          \
    EXPECT_THAT(reports, ElementsAre(Freed(block), Allocated(block, kOwnBlock))) << #name; \
    EXPECT_EQ(moved, nullptr) << #name;                                                    \
  }
#define POSIX(name)                                                   \
  {                                                                   \
    void* block = nullptr;                                            \
    int error = 0;                                                    \
    auto reports = Of([&] { error = name(&block, 16, 40); });         \
    EXPECT_EQ(error, 0) << #name;                                     \
    EXPECT_THAT(reports, ElementsAre(Allocated(block, 40))) << #name; \
    reports = Of([&] { error = name(&block, 16, kMostBlock + 1); });  \
    EXPECT_NE(error, 0) << #name;                                     \
    EXPECT_THAT(reports, ElementsAre()) << #name;                     \
  }

TEST(Mimalloc, IsReported) {
  MIMALLOC_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX)
  EXPECT_THAT(Of([] { EXPECT_EQ(mi_malloc(kMostBlock + 1), nullptr); }), ElementsAre());
}

TEST(Jemalloc, IsReported){JEMALLOC_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX)}

TEST(PrefixedJemalloc,
     IsReported){PREFIXED_JEMALLOC_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX)}

TEST(Tcmalloc, IsReported) {
  TCMALLOC_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX)
}

}  // namespace
}  // namespace trapline::preload
