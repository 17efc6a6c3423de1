// What the preload library reports of blocks given out and taken back.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "guest-agent/preload/declarations.h"
#include "tests/preload/recorder.h"

namespace trapline::preload {
namespace {

[[maybe_unused]] const bool accesses_count = StartTracking();

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Keeps the compiler from leaving out pairs of allocation and release.
void* Keep(void* block) {
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}

Report Of(std::uint64_t kind, const void* block, std::uint64_t size) {
  return {kind, block, size, NumberOfThisThread(), 0, 0};
}

// `size` as requested, then the usable size when it goes.
auto Lifetime(const void* block, std::size_t size, std::size_t usable) {
  return ElementsAre(Of(TRAPLINE_ALLOCATE, block, size), Of(TRAPLINE_FREE, block, usable));
}

TEST(Malloc, FamilyIsReportedOnce) {
  using Allocate = void* (*)();
  struct Case {
    const char* name;
    std::size_t size;
    Allocate allocate;
  };
  const Case cases[] = {
      {"malloc", 100, [] { return Keep(malloc(100)); }},
      {"calloc", 90, [] { return Keep(calloc(9, 10)); }},
      {"realloc", 70, [] { return Keep(realloc(nullptr, 70)); }},
      {"reallocarray", 60, [] { return Keep(reallocarray(nullptr, 6, 10)); }},
      {"memalign", 100, [] { return Keep(memalign(256, 100)); }},
      {"aligned_alloc", 512, [] { return Keep(aligned_alloc(256, 512)); }},
      {"valloc", 100, [] { return Keep(valloc(100)); }},
      {"pvalloc", 100, [] { return Keep(pvalloc(100)); }},
      {"posix_memalign", 100,
       [] {
         void* block = nullptr;
         EXPECT_EQ(posix_memalign(&block, 64, 100), 0);
         return Keep(block);
       }},
      {"big", std::size_t{1} << 24, [] { return Keep(malloc(std::size_t{1} << 24)); }},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    // jemalloc has no pvalloc: natively, too, its free is then given libc's block.
    if (std::string(one.name) == "pvalloc" && dlsym(RTLD_DEFAULT, "mallctl") != nullptr) continue;
    void* block = nullptr;
    std::size_t usable = 0;
    const auto reports = Record(What::kAllocation, [&] {
      block = one.allocate();
      usable = malloc_usable_size(block);
      free(block);
    });
    EXPECT_GE(usable, one.size);
    EXPECT_THAT(reports, Lifetime(block, one.size, usable));
  }
}

TEST(Malloc, SizesAreAskedForOnlyWhileAccessesCount) {
  void* blocks[2];
  const auto reports = Record(What::kAllocation, [&] {
    for (void*& block : blocks) block = Keep(malloc(100));
    SetTracking(false);
    free(blocks[0]);
    blocks[1] = Keep(realloc(blocks[1], 200));
    SetTracking(true);
  });
  ASSERT_EQ(reports.size(), 5U);
  EXPECT_EQ(reports[2], Of(TRAPLINE_FREE, blocks[0], 0));
  EXPECT_EQ(reports[3].size, 0U);
  EXPECT_EQ(reports[4], Of(TRAPLINE_ALLOCATE, blocks[1], 200));
  free(blocks[1]);
}

TEST(Malloc, FreeOfNothingIsNotReported) {
  EXPECT_THAT(Record(What::kAllocation, [] { free(Keep(nullptr)); }), IsEmpty());
}

TEST(Malloc, FailuresAreNotReported) {
  const auto reports = RecordFromAnywhere(What::kAllocation, [] {
    EXPECT_EQ(Keep(malloc(SIZE_MAX / 2)), nullptr);
    volatile std::size_t many = SIZE_MAX / 2;
    EXPECT_EQ(Keep(calloc(many, 4)), nullptr);
    errno = 0;
    EXPECT_EQ(Keep(reallocarray(nullptr, many, 4)), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    void* block = nullptr;
    EXPECT_EQ(posix_memalign(&block, 64, SIZE_MAX / 2), ENOMEM);
  });
  // tcmalloc writes a message, for which it allocates.
  for (const Report& report : reports) EXPECT_FALSE(IsInThisProgram(report.ip)) << report;
}

TEST(Realloc, TheOldBlockGoesBeforeTheNewOneComes) {
  void* block = malloc(100);
  const std::size_t usable = malloc_usable_size(block);
  void* grown = nullptr;
  const auto reports = Record(What::kAllocation, [&] { grown = Keep(realloc(block, 1 << 20)); });
  EXPECT_THAT(reports,
              ElementsAre(Of(TRAPLINE_FREE, block, usable), Of(TRAPLINE_ALLOCATE, grown, 1 << 20)));
  free(grown);
}

TEST(Realloc, WhatFailsLeavesTheBlock) {
  void* block = malloc(100);
  const std::size_t usable = malloc_usable_size(block);
  EXPECT_THAT(
      Record(What::kAllocation, [&] { EXPECT_EQ(Keep(realloc(block, SIZE_MAX / 2)), nullptr); }),
      ElementsAre(Of(TRAPLINE_FREE, block, usable), Of(TRAPLINE_ALLOCATE, block, usable)));
  free(block);
}

TEST(Realloc, ToNothingFrees) {
  void* block = malloc(100);
  const std::size_t usable = malloc_usable_size(block);
  void* left = block;
  const auto reports = Record(What::kAllocation, [&] { left = realloc(block, 0); });
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(reports.front(), Of(TRAPLINE_FREE, block, usable));
  free(left);  // jemalloc gives a block
}

TEST(Libc, WhatItAllocatesForTheProgramIsReported) {
  char* copy = nullptr;
  const auto reports = RecordFromAnywhere(What::kAllocation, [&] { copy = strdup("four"); });
  ASSERT_THAT(reports, ElementsAre(Of(TRAPLINE_ALLOCATE, copy, 5)));
  free(copy);
}

TEST(New, EveryVariantIsReportedOnce) {
  const auto check = [](std::size_t size, auto allocate, auto release) {
    void* block = nullptr;
    std::size_t usable = 0;
    const auto reports = Record(What::kAllocation, [&] {
      block = Keep(allocate());
      usable = malloc_usable_size(block);
      release(block);
    });
    EXPECT_THAT(reports, Lifetime(block, size, usable));
  };
  check(
      10, [] { return operator new(10); }, [](void* block) { operator delete(block); });
  check(
      11, [] { return operator new[](11); }, [](void* block) { operator delete[](block); });
  check(
      12, [] { return operator new(12, std::nothrow); },
      [](void* block) { operator delete(block, std::nothrow); });
  check(
      13, [] { return operator new[](13, std::nothrow); },
      [](void* block) { operator delete[](block, std::nothrow); });
  check(
      14, [] { return operator new(14); }, [](void* block) { _ZdlPvm(block, 14); });
  check(
      15, [] { return operator new[](15); }, [](void* block) { _ZdaPvm(block, 15); });
}

TEST(New, AlignedVariantsAreReportedOnce) {
  constexpr auto kAlignment = std::align_val_t(128);
  const auto check = [](auto allocate, auto release) {
    void* block = nullptr;
    const auto reports = Record(What::kAllocation, [&] {
      block = Keep(allocate());
      release(block);
    });
    // How much the runtime asks the allocator for is its own affair.
    ASSERT_EQ(reports.size(), 2U);
    EXPECT_EQ(reports[0].kind, TRAPLINE_ALLOCATE);
    EXPECT_EQ(reports[0].address, block);
    EXPECT_GE(reports[0].size, 10U);
    EXPECT_EQ(reports[1].kind, TRAPLINE_FREE);
    EXPECT_EQ(reports[1].address, block);
  };
  check([] { return operator new(10, kAlignment); },
        [](void* block) { operator delete(block, kAlignment); });
  check([] { return operator new[](10, kAlignment); },
        [](void* block) { operator delete[](block, kAlignment); });
  check([] { return operator new(10, kAlignment, std::nothrow); },
        [](void* block) { operator delete(block, kAlignment, std::nothrow); });
  check([] { return operator new[](10, kAlignment, std::nothrow); },
        [](void* block) { operator delete[](block, kAlignment, std::nothrow); });
  check([] { return operator new(10, kAlignment); },
        [](void* block) { _ZdlPvmSt11align_val_t(block, 10, 128); });
  check([] { return operator new[](10, kAlignment); },
        [](void* block) { _ZdaPvmSt11align_val_t(block, 10, 128); });
}

TEST(New, FailureThrowsThroughTheLibrary) {
  volatile std::size_t huge = SIZE_MAX / 4;
  EXPECT_THROW(Keep(operator new(huge)), std::bad_alloc);
  EXPECT_EQ(Keep(operator new(huge, std::nothrow)), nullptr);
  // And leaves no trace in what comes after.
  void* block = nullptr;
  const auto reports = Record(What::kAllocation, [&] { block = Keep(malloc(8)); });
  EXPECT_THAT(reports, ElementsAre(Of(TRAPLINE_ALLOCATE, block, 8)));
  free(block);
}

TEST(Allocation, OriginIsTheCallersInstruction) {
  // Reports of Record are checked to come from this program: not from libstdc++, which is
  // where malloc is called.
  Record(What::kAllocation, [] { delete new int(3); });
  Record(What::kAllocation, [] { std::make_unique<std::string>(1000, 'x'); });
}

}  // namespace
}  // namespace trapline::preload
