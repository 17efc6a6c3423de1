// Which functions are taken for synchronisation by their names alone.
#include "symbols/synchronising_function.h"

#include <gtest/gtest.h>

namespace trapline {
namespace {

TEST(SynchronisingFunction, AtomicOperationsOfTheLibraries) {
  EXPECT_TRUE(IsSynchronisingFunction("_ZNSt13__atomic_baseIiE5storeEiSt12memory_order"));
  EXPECT_TRUE(IsSynchronisingFunction("_ZNKSt6atomicIbE4loadESt12memory_order"));
  EXPECT_TRUE(IsSynchronisingFunction("_ZNVKSt6atomicIbE4loadESt12memory_order"));
  EXPECT_TRUE(
      IsSynchronisingFunction("_ZSt20atomic_load_explicitIiET_PKSt6atomicIS0_ESt12memory_order"));
  EXPECT_TRUE(
      IsSynchronisingFunction("_ZN4core4sync6atomic11AtomicUsize5store17h0123456789abcdefE"));
  EXPECT_FALSE(IsSynchronisingFunction("_ZNSt6vectorIiSaIiEE9push_backERKi"));
  EXPECT_FALSE(IsSynchronisingFunction("_ZN4core3ptr13drop_in_place17h0123456789abcdefE"));
}

TEST(SynchronisingFunction, BarriersAndTheirLike) {
  EXPECT_TRUE(IsSynchronisingFunction("_ZNSt7barrierISt18__empty_completionE15arrive_and_waitEv"));
  EXPECT_TRUE(IsSynchronisingFunction("_ZNSt14__tree_barrierISt18__empty_completionE9_M_arriveEh"));
  EXPECT_TRUE(IsSynchronisingFunction("_ZNKSt5latch4waitEv"));
  EXPECT_TRUE(IsSynchronisingFunction("_ZNSt18counting_semaphoreILl1EE7acquireEv"));
  EXPECT_TRUE(IsSynchronisingFunction(
      "_ZNSt8__detail8__waiterISt17integral_constantIbLb1EEE10_M_do_waitIZNKSt5latch4waitEvEUlvE_"
      "EEvT_"));
  EXPECT_FALSE(IsSynchronisingFunction("_ZNSt8__detail13_AnyMatcherE"));
  EXPECT_FALSE(IsSynchronisingFunction("_ZNSt7barrierIZ4mainEUlvE_E15arrive_and_waitEv"))
      << "what its user's function does is its own";
  EXPECT_FALSE(IsSynchronisingFunction("_ZNSt7barrier"));
}

TEST(SynchronisingFunction, GlibsAtomicsAndOnce) {
  EXPECT_TRUE(IsSynchronisingFunction("g_once_impl"));
  EXPECT_TRUE(IsSynchronisingFunction("g_atomic_pointer_get"));
  EXPECT_FALSE(IsSynchronisingFunction("g_strdup"));
  EXPECT_FALSE(IsSynchronisingFunction("g_async_queue_push"));
}

TEST(SynchronisingFunction, OfConcurrencyKitAndUserspaceRcu) {
  EXPECT_TRUE(IsSynchronisingFunction("ck_pr_md_store_uint"));
  EXPECT_TRUE(IsSynchronisingFunction("_uatomic_add"));
  EXPECT_TRUE(IsSynchronisingFunction(
      "_D4core8internal6atomic__T10atomicLoadVEQBmQBlQBd__TQBgZQBkFNbNiNeMKxmZm"));
  EXPECT_TRUE(IsSynchronisingFunction("_urcu_memb_read_lock"));
  EXPECT_FALSE(IsSynchronisingFunction("ck_ring_enqueue_spsc"));
  EXPECT_FALSE(IsSynchronisingFunction("rcu_reclaim"));
}

TEST(SynchronisingFunction, Variables) {
  EXPECT_EQ(AtomicBytesOfVariable("_ZGVZ4mainE1x"), 8);
  EXPECT_EQ(AtomicBytesOfVariable("urcu_memb_gp"), 16);
  EXPECT_EQ(AtomicBytesOfVariable("urcu_qsbr_gp"), 16);
  EXPECT_EQ(AtomicBytesOfVariable("urcu_memb_reader"), 0);
  EXPECT_EQ(AtomicBytesOfVariable("my_gp"), 0);
}

TEST(SynchronisingFunction, CrossbeamsOwn) {
  EXPECT_TRUE(IsSynchronisingFunction(
      "_ZN17crossbeam_channel7flavors5array16Channel$LT$T$GT$4send17h0123456789abcdefE"));
  EXPECT_TRUE(IsSynchronisingFunction(
      "_ZN15crossbeam_deque5deque16Stealer$LT$T$GT$5steal17h81c0076f9f6d68b4E"));
  EXPECT_TRUE(IsSynchronisingFunction(
      "_ZN67_$LT$crossbeam_channel..channel..Receiver$LT$T$GT$$u20$as$u20$X$GT$3foo17h0E"));
  EXPECT_FALSE(IsSynchronisingFunction("_ZN2cb8channels28_$u7b$$u7b$closure$u7d$$u7d$17h0E"));
}

TEST(SynchronisingFunction, OneTbbsContainersButNotItsLoops) {
  EXPECT_TRUE(IsSynchronisingFunction("_ZN3tbb6detail2d116concurrent_queueIiE4pushERKi"));
  EXPECT_TRUE(IsSynchronisingFunction("_ZN3tbb6detail2d110spin_mutex4lockEv"));
  EXPECT_TRUE(IsSynchronisingFunction("_ZN3tbb6detail2d19fold_treeINS1_9tree_nodeEEEvPNS1_4nodeE"));
  EXPECT_FALSE(
      IsSynchronisingFunction("_ZN3tbb6detail2d19start_forIXE7executeERNS1_14execution_dataE"));
  EXPECT_FALSE(IsSynchronisingFunction("_ZN3tbb6detail2d113function_taskIZ4mainEUlvE_E7executeEv"));
  EXPECT_FALSE(IsSynchronisingFunction("_ZN3tbb6detail2r15spawnERNS0_2d14taskE"));
}

TEST(SynchronisingFunction, AbseilsMutexesButNotWhatTheyCall) {
  for (const char* name :
       {"_ZN4absl5Mutex4LockEv", "_ZN4absl12lts_202206235Mutex4LockEv",
        "_ZN4absl7debian37BarrierD2Ev", "_ZN4absl7debian3L7EnqueueEPNS0_13base_internal14PerThread",
        "_ZNK4absl7debian312Notification19WaitForNotificationEv",
        "_ZN4absl7debian324synchronization_internalL21ReclaimThreadIdentityEPv",
        "_ZN4absl7debian313base_internal12_GLOBAL__N_125AllocateThreadIdentityKeyEPFvPvE",
        "_ZN4absl7debian313base_internal12CallOnceImplIZNS1_7NumCPUsEvEUlvE_JEEEvPSt6atomicIjE"}) {
    EXPECT_TRUE(IsSynchronisingFunction(name)) << name;
  }
  for (const char* name :
       {"_ZN4absl", "_ZN4absl7debian3", "_ZNK4absl7debian39Condition4EvalEv",
        "_ZN4absl7debian3L11DereferenceEPv", "_ZN4absl7debian39StrFormatEv",
        "_ZN4absl7debian313base_internal12CallOnceImplIZ4mainEUlvE_JEEEvPSt6atomicIjE",
        "_ZN4absl7debian313base_internal12CallOnceImplIRFvvEJEEEvPSt6atomicIjE"}) {
    EXPECT_FALSE(IsSynchronisingFunction(name)) << name;
  }
}

TEST(TbbFunction, AllOfTheHeaders) {
  for (const char* name : {"_ZN3tbb6detail2d19start_forIXE7executeERNS1_14execution_dataE",
                           "_ZN3tbb6detail2d113function_taskIZ4mainEUlvE_E7executeEv",
                           "_ZNK3tbb6detail2d05raii_guardIZ4mainEUlvE_E3runEv"}) {
    EXPECT_TRUE(IsTbbFunction(name)) << name;
  }
  for (const char* name : {"", "main", "_ZN3tbb", "_ZN3tbb6detail2r15spawnERNS0_2d14taskE",
                           "_ZN4core6detail2d11aEv"}) {
    EXPECT_FALSE(IsTbbFunction(name)) << name;
  }
}

TEST(ParallelOr, OfTheAlgorithmsThatLookForAny) {
  EXPECT_TRUE(
      IsParallelOr("_ZN3tbb6detail2d19start_forIXN6__pstl13__tbb_backend19__parallel_for_"
                   "bodyIXZNS3_10__internal13__parallel_orIXEE7executeEv"));
  EXPECT_FALSE(IsParallelOr("_ZN6__pstl10__internal15__parallel_findIXE"));
  EXPECT_FALSE(IsParallelOr("_ZN4mine13__parallel_orIXE"));
  EXPECT_FALSE(IsParallelOr(""));
}

TEST(SynchronisingFunction, OtherTexts) {
  for (const char* name : {"", "main", "_Z", "_ZN", "_ZN3", "_ZN9999999999999999999999x", "_ZNSt",
                           "_ZNSt99atomic", "atomic_load", "crossbeam_x", "_ZN3tbb6detail2d1"}) {
    EXPECT_FALSE(IsSynchronisingFunction(name)) << name;
  }
}

TEST(RustFunction, OfBothManglings) {
  for (const char* name :
       {"_ZN4core4sync6atomic11AtomicUsize5store17h0123456789abcdefE",
        "_ZN2cb4find28_$u7b$$u7b$closure$u7d$$u7d$17hd99dc1770da7a372E.llvm.1435",
        "_ZN4core3ops8function6FnOnce40call_once$u7b$$u7b$vtable.shim$u7d$$u7d$17h61326a1262bca0"
        "eeE",
        "_RNvNtCsgEmfK2I1SDS_4core3str5count"}) {
    EXPECT_TRUE(IsRustFunction(name)) << name;
  }
}

TEST(RustFunction, OtherTexts) {
  for (const char* name :
       {"", "main", "_R", "_ZN3foo3barEv", "_ZN3foo17h0123456789abcdeE", "_ZN3foo17h",
        "_ZN3foo17h0123456789abcdefEv", "_ZN3foo17h0123456789ABCDEFE", "x17h0123456789abcdefE"}) {
    EXPECT_FALSE(IsRustFunction(name)) << name;
  }
}

}  // namespace
}  // namespace trapline
