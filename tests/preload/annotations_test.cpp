// Annotations that programs carry, and what is reported of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "guest-agent/preload/declarations.h"
#include "tests/preload/recorder.h"

// Programs leave them undefined and weak.
#pragma weak AnnotateHappensBefore
#pragma weak AnnotateHappensAfter
#pragma weak WTFAnnotateHappensBefore
#pragma weak WTFAnnotateHappensAfter
#pragma weak WTFAnnotateBenignRaceSized
#pragma weak AnnotateCondVarSignal
#pragma weak AnnotateCondVarSignalAll
#pragma weak AnnotateCondVarWait
#pragma weak AnnotatePCQCreate
#pragma weak AnnotatePCQDestroy
#pragma weak AnnotatePCQPut
#pragma weak AnnotatePCQGet
#pragma weak AnnotateRWLockCreate
#pragma weak AnnotateRWLockCreateStatic
#pragma weak AnnotateRWLockDestroy
#pragma weak AnnotateRWLockAcquired
#pragma weak AnnotateRWLockReleased
#pragma weak AnnotateBarrierInit
#pragma weak AnnotateBarrierWaitBefore
#pragma weak AnnotateBarrierWaitAfter
#pragma weak AnnotateBarrierDestroy
#pragma weak AnnotateIgnoreReadsBegin
#pragma weak AnnotateIgnoreReadsEnd
#pragma weak AnnotateIgnoreWritesBegin
#pragma weak AnnotateIgnoreWritesEnd
#pragma weak AnnotateIgnoreSyncBegin
#pragma weak AnnotateIgnoreSyncEnd
#pragma weak AnnotateBenignRace
#pragma weak AnnotateBenignRaceSized
#pragma weak AnnotateNewMemory
#pragma weak AnnotatePublishMemoryRange
#pragma weak AnnotateUnpublishMemoryRange
#pragma weak AnnotateThreadName
#pragma weak AnnotateExpectRace
#pragma weak AnnotateFlushExpectedRaces
#pragma weak AnnotateFlushState
#pragma weak AnnotateEnableRaceDetection
#pragma weak AnnotateTraceMemory
#pragma weak AnnotateMutexIsUsedAsCondVar
#pragma weak AnnotateMutexIsNotPHB
#pragma weak AnnotateNoOp
#pragma weak __tsan_acquire
#pragma weak __tsan_release
#pragma weak __tsan_mutex_create
#pragma weak __tsan_mutex_destroy
#pragma weak __tsan_mutex_pre_lock
#pragma weak __tsan_mutex_post_lock
#pragma weak __tsan_mutex_pre_unlock
#pragma weak __tsan_mutex_post_unlock
#pragma weak __tsan_mutex_pre_signal
#pragma weak __tsan_mutex_post_signal
#pragma weak __tsan_mutex_pre_divert
#pragma weak __tsan_mutex_post_divert
#pragma weak __tsan_get_current_fiber
#pragma weak __tsan_create_fiber
#pragma weak __tsan_destroy_fiber
#pragma weak __tsan_switch_to_fiber
#pragma weak __tsan_set_fiber_name
#pragma weak __tsan_java_init
#pragma weak __tsan_java_fini
#pragma weak __tsan_java_alloc
#pragma weak __tsan_java_free
#pragma weak __tsan_java_move
#pragma weak __tsan_java_finalize
#pragma weak __tsan_java_mutex_lock
#pragma weak __tsan_java_mutex_unlock
#pragma weak __tsan_java_mutex_read_lock
#pragma weak __tsan_java_mutex_read_unlock
#pragma weak __tsan_java_mutex_lock_rec
#pragma weak __tsan_java_mutex_unlock_rec
#pragma weak __tsan_java_acquire
#pragma weak __tsan_java_release
#pragma weak __tsan_java_release_store

namespace trapline::preload {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::array<char, 64> object;

Report Of(std::uint64_t kind, std::uint64_t size = 0, const volatile void* address = &object) {
  return {kind, address, size, NumberOfThisThread(), 0, 0};
}

Report Ignore(std::uint64_t kind, std::uint64_t size) { return Of(kind, size, nullptr); }

TEST(Annotations, Order) {
  EXPECT_THAT(Record(What::kSynchronisation,
                     [] {
                       AnnotateHappensBefore("f", 1, &object);
                       AnnotateHappensAfter("f", 2, &object);
                       WTFAnnotateHappensBefore("f", 3, &object);
                       WTFAnnotateHappensAfter("f", 4, &object);
                       AnnotateCondVarSignal("f", 5, &object);
                       AnnotateCondVarSignalAll("f", 6, &object);
                       AnnotateCondVarWait("f", 7, &object, nullptr);
                       AnnotatePCQCreate("f", 8, &object);
                       AnnotatePCQPut("f", 9, &object);
                       AnnotatePCQGet("f", 10, &object);
                       AnnotatePCQDestroy("f", 11, &object);
                     }),
              ElementsAre(Of(TRAPLINE_HAPPENS_BEFORE), Of(TRAPLINE_HAPPENS_AFTER),
                          Of(TRAPLINE_HAPPENS_BEFORE), Of(TRAPLINE_HAPPENS_AFTER),
                          Of(TRAPLINE_HAPPENS_BEFORE), Of(TRAPLINE_HAPPENS_BEFORE),
                          Of(TRAPLINE_HAPPENS_AFTER), Of(TRAPLINE_HAPPENS_BEFORE),
                          Of(TRAPLINE_HAPPENS_AFTER), Of(TRAPLINE_SYNC_DESTROYED)));
}

TEST(Annotations, LocksAndBarriers) {
  EXPECT_THAT(Record(What::kSynchronisation,
                     [] {
                       AnnotateRWLockCreate("f", 1, &object);
                       AnnotateRWLockCreateStatic("f", 1, &object);
                       AnnotateRWLockAcquired("f", 2, &object, 1);
                       AnnotateRWLockReleased("f", 3, &object, 1);
                       AnnotateRWLockAcquired("f", 4, &object, 0);
                       AnnotateRWLockReleased("f", 5, &object, 0);
                       AnnotateRWLockDestroy("f", 6, &object);
                       AnnotateBarrierInit("f", 7, &object, 2, 0);
                       AnnotateBarrierWaitBefore("f", 8, &object);
                       AnnotateBarrierWaitAfter("f", 9, &object);
                       AnnotateBarrierDestroy("f", 10, &object);
                     }),
              ElementsAre(Of(TRAPLINE_ACQUIRE, TRAPLINE_LOCK_ANNOTATED),
                          Of(TRAPLINE_RELEASE, TRAPLINE_LOCK_ANNOTATED),
                          Of(TRAPLINE_ACQUIRE_SHARED, TRAPLINE_LOCK_ANNOTATED),
                          Of(TRAPLINE_RELEASE_SHARED, TRAPLINE_LOCK_ANNOTATED),
                          Of(TRAPLINE_SYNC_DESTROYED), Of(TRAPLINE_BARRIER_ENTER),
                          Of(TRAPLINE_BARRIER_LEAVE), Of(TRAPLINE_SYNC_DESTROYED)));
}

TEST(Annotations, WhatDoesNotCount) {
  EXPECT_THAT(
      Record(What::kAnnotations,
             [] {
               AnnotateIgnoreReadsBegin("f", 1);
               AnnotateIgnoreReadsEnd("f", 2);
               AnnotateIgnoreWritesBegin("f", 3);
               AnnotateIgnoreWritesEnd("f", 4);
               AnnotateIgnoreSyncBegin("f", 5);
               AnnotateIgnoreSyncEnd("f", 6);
               AnnotateBenignRace("f", 7, &object, "meant");
               AnnotateBenignRaceSized("f", 8, &object, 20, "meant");
               WTFAnnotateBenignRaceSized("f", 9, &object, 21, "meant");
               AnnotateNewMemory("f", 10, &object, 30);
             }),
      ElementsAre(Ignore(TRAPLINE_IGNORE_BEGIN, 1), Ignore(TRAPLINE_IGNORE_END, 1),
                  Ignore(TRAPLINE_IGNORE_BEGIN, 2), Ignore(TRAPLINE_IGNORE_END, 2),
                  Ignore(TRAPLINE_IGNORE_SYNC_BEGIN, 0), Ignore(TRAPLINE_IGNORE_SYNC_END, 0),
                  Of(TRAPLINE_BENIGN_RACE, 8), Of(TRAPLINE_BENIGN_RACE, 20),
                  Of(TRAPLINE_BENIGN_RACE, 21), Of(TRAPLINE_CLEAR_HISTORY, 30)));
}

TEST(Annotations, AThreadsName) {
  const auto reports =
      Record(What::kAnnotations, [] { AnnotateThreadName("f", 1, "the worker that never ends"); });
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports.at(0).kind, TRAPLINE_THREAD_NAME);
  EXPECT_STREQ(static_cast<const char*>(const_cast<const void*>(reports.at(0).address)),
               "the worker that never ends");
}

TEST(Annotations, ThoseForOtherDetectorsReportNothing) {
  const auto call = [] {
    AnnotateExpectRace("f", 1, &object, "");
    AnnotateFlushExpectedRaces("f", 2);
    AnnotateFlushState("f", 3);
    AnnotateEnableRaceDetection("f", 4, 1);
    AnnotateTraceMemory("f", 5, &object);
    AnnotateMutexIsUsedAsCondVar("f", 6, &object);
    AnnotateMutexIsNotPHB("f", 7, &object);
    AnnotateNoOp("f", 8, nullptr);
  };
  EXPECT_THAT(Record(What::kSynchronisation, call), IsEmpty());
  EXPECT_THAT(Record(What::kAnnotations, call), IsEmpty());
}

TEST(ThreadSanitizer, Order) {
  EXPECT_THAT(Record(What::kSynchronisation,
                     [] {
                       __tsan_release(&object);
                       __tsan_acquire(&object);
                     }),
              ElementsAre(Of(TRAPLINE_HAPPENS_BEFORE), Of(TRAPLINE_HAPPENS_AFTER)));
}

constexpr unsigned kReadLock = 1 << 3;
constexpr unsigned kTryLock = 1 << 4;
constexpr unsigned kTryLockFailed = 1 << 5;

TEST(ThreadSanitizer, Mutexes) {
  EXPECT_THAT(Record(What::kSynchronisation,
                     [] {
                       __tsan_mutex_create(&object, 0);
                       __tsan_mutex_pre_lock(&object, 0);
                       __tsan_mutex_post_lock(&object, 0, 0);
                       __tsan_mutex_pre_unlock(&object, 0);
                       __tsan_mutex_post_unlock(&object, 0);
                       __tsan_mutex_pre_lock(&object, kReadLock);
                       __tsan_mutex_post_lock(&object, kReadLock, 0);
                       __tsan_mutex_pre_unlock(&object, kReadLock);
                       __tsan_mutex_post_unlock(&object, kReadLock);
                       __tsan_mutex_pre_lock(&object, kTryLock);
                       __tsan_mutex_post_lock(&object, kTryLock | kTryLockFailed, 0);
                       __tsan_mutex_destroy(&object, 0);
                     }),
              ElementsAre(Of(TRAPLINE_ACQUIRE, TRAPLINE_LOCK_ANNOTATED),
                          Of(TRAPLINE_RELEASE, TRAPLINE_LOCK_ANNOTATED),
                          Of(TRAPLINE_ACQUIRE_SHARED, TRAPLINE_LOCK_ANNOTATED),
                          Of(TRAPLINE_RELEASE_SHARED, TRAPLINE_LOCK_ANNOTATED),
                          Of(TRAPLINE_SYNC_DESTROYED)));
}

TEST(ThreadSanitizer, TheInsideOfAMutexDoesNotCount) {
  const auto begin = Ignore(TRAPLINE_IGNORE_BEGIN, 3);
  const auto begin_sync = Ignore(TRAPLINE_IGNORE_SYNC_BEGIN, 0);
  const auto end = Ignore(TRAPLINE_IGNORE_END, 3);
  const auto end_sync = Ignore(TRAPLINE_IGNORE_SYNC_END, 0);
  EXPECT_THAT(Record(What::kAnnotations,
                     [] {
                       __tsan_mutex_pre_lock(&object, 0);
                       __tsan_mutex_pre_divert(&object, 0);
                       __tsan_mutex_post_divert(&object, 0);
                       __tsan_mutex_post_lock(&object, 0, 0);
                       __tsan_mutex_pre_signal(&object, 0);
                       __tsan_mutex_post_signal(&object, 0);
                     }),
              ElementsAre(begin, begin_sync, end_sync, end, begin, begin_sync, end_sync, end, begin,
                          begin_sync, end_sync, end));
}

TEST(ThreadSanitizer, Fibers) {
  void* const own = __tsan_get_current_fiber();
  EXPECT_EQ(own, __tsan_get_current_fiber());
  void* fiber = nullptr;
  void* other = nullptr;
  const std::vector<Report> made = Record(What::kAnnotations, [&] {
    fiber = __tsan_create_fiber(0);
    other = __tsan_create_fiber(0);
  });
  EXPECT_NE(fiber, other);
  EXPECT_THAT(
      made, ElementsAre(Of(TRAPLINE_FIBER_CREATE, 0, fiber), Of(TRAPLINE_FIBER_CREATE, 0, other)));
  constexpr unsigned kNoOrder = 1;
  const std::vector<Report> switches = Record(What::kAnnotations, [&] {
    __tsan_switch_to_fiber(fiber, 0);
    EXPECT_EQ(__tsan_get_current_fiber(), fiber);
    __tsan_switch_to_fiber(other, kNoOrder);
    __tsan_switch_to_fiber(own, kNoOrder);
    EXPECT_EQ(__tsan_get_current_fiber(), own);
  });
  ASSERT_EQ(switches.size(), 3U);
  const std::array<const void*, 3> targets{fiber, other, nullptr};
  for (std::size_t i = 0; i < switches.size(); ++i) {
    EXPECT_EQ(switches[i].kind, TRAPLINE_FIBER_SWITCH);
    EXPECT_EQ(switches[i].address, targets.at(i));
    // The stack pointer, and whether it orders.
    EXPECT_EQ(switches[i].size & 1, i == 0 ? 1U : 0U);
    EXPECT_LT(reinterpret_cast<std::uint64_t>(&own) - (switches[i].size >> 16), 4096U);
  }
  EXPECT_THAT(
      Record(What::kAnnotations,
             [&] {
               __tsan_destroy_fiber(fiber);
               __tsan_destroy_fiber(other);
             }),
      ElementsAre(Of(TRAPLINE_FIBER_DESTROY, 0, fiber), Of(TRAPLINE_FIBER_DESTROY, 0, other)));
}

TEST(ThreadSanitizer, ManagedHeaps) {
  const auto at = [](std::size_t offset) {
    return reinterpret_cast<unsigned long>(object.data()) + offset;
  };
  EXPECT_THAT(Record(What::kAllocation, [&] { __tsan_java_alloc(at(16), 16); }),
              ElementsAre(Of(TRAPLINE_ALLOCATE, 16, &object[16])));
  EXPECT_THAT(
      Record(What::kAnnotations,
             [&] {
               __tsan_java_init(at(0), 64);
               __tsan_java_free(at(16), 32);
             }),
      ElementsAre(Of(TRAPLINE_CLEAR_HISTORY, 64), Of(TRAPLINE_CLEAR_HISTORY, 32, &object[16])));
  // The place that is left, but for what lies in the new one.
  struct Move {
    std::size_t from, to, size, cleared, cleared_size;
  };
  for (const Move& move : {Move{0, 32, 16, 0, 16}, Move{32, 0, 16, 32, 16}, Move{8, 0, 16, 16, 8},
                           Move{0, 8, 16, 0, 8}}) {
    EXPECT_THAT(
        RecordFromAnywhere(What::kAnnotations,
                           [&] { __tsan_java_move(at(move.from), at(move.to), move.size); }),
        ElementsAre(Of(TRAPLINE_COPY_HISTORY, move.size, &object[move.to]),
                    Of(TRAPLINE_CLEAR_HISTORY, move.cleared_size, &object[move.cleared])));
  }
  EXPECT_THAT(RecordFromAnywhere(What::kAnnotations, [] { __tsan_java_finalize(); }),
              ElementsAre(Of(TRAPLINE_AFTER_ALL, 0, nullptr)));
  EXPECT_EQ(__tsan_java_fini(), 0);
  EXPECT_THAT(
      Record(What::kSynchronisation,
             [&] {
               __tsan_java_mutex_lock(at(0));
               __tsan_java_mutex_unlock(at(0));
               __tsan_java_mutex_read_lock(at(0));
               __tsan_java_mutex_read_unlock(at(0));
               __tsan_java_mutex_lock_rec(at(0), 2);
               EXPECT_EQ(__tsan_java_mutex_unlock_rec(at(0)), 1);
               __tsan_java_release(at(0));
               __tsan_java_acquire(at(0));
               __tsan_java_release_store(at(0));
             }),
      ElementsAre(Of(TRAPLINE_ACQUIRE, TRAPLINE_LOCK_ANNOTATED),
                  Of(TRAPLINE_RELEASE, TRAPLINE_LOCK_ANNOTATED),
                  Of(TRAPLINE_ACQUIRE_SHARED, TRAPLINE_LOCK_ANNOTATED),
                  Of(TRAPLINE_RELEASE_SHARED, TRAPLINE_LOCK_ANNOTATED),
                  Of(TRAPLINE_ACQUIRE, TRAPLINE_LOCK_ANNOTATED),
                  Of(TRAPLINE_ACQUIRE, TRAPLINE_LOCK_ANNOTATED),
                  Of(TRAPLINE_RELEASE, TRAPLINE_LOCK_ANNOTATED), Of(TRAPLINE_HAPPENS_BEFORE),
                  Of(TRAPLINE_HAPPENS_AFTER), Of(TRAPLINE_HAPPENS_BEFORE)));
}

}  // namespace
}  // namespace trapline::preload
