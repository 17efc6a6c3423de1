// Which functions of a file are those of an allocator linked into it.
#include "symbols/linked_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "symbols/modules.h"
#include "tests/symbols/loaded_file.h"

namespace trapline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kBegin = 0x1000, kSize = 0x100;

// Functions in a row, of kSize bytes each.
class Table {
 public:
  Table& Global(std::string_view name) { return Add({0, 0, name}); }
  Table& Local(std::string_view name, unsigned file = 0, std::string_view file_name = {}) {
    return Add({0, 0, name, true, file, file_name});
  }

  // Their names, as far as they are an allocator's; "jemalloc:" and the like before each.
  std::vector<std::string> Found() const {
    std::vector<std::string> found;
    for (const LinkedAllocator& allocator : FindLinkedAllocators(functions_)) {
      for (const FunctionSymbol& function : functions_) {
        const bool begins = allocator.Contains(function.begin);
        EXPECT_EQ(begins, allocator.Contains(function.end - 1));
        if (begins) found.push_back(std::string(allocator.name) + ":" + std::string(function.name));
      }
    }
    return found;
  }

 private:
  Table& Add(FunctionSymbol function) {
    function.begin = kBegin + kSize * functions_.size();
    function.end = function.begin + kSize;
    functions_.push_back(function);
    return *this;
  }

  std::vector<FunctionSymbol> functions_;
};

TEST(LinkedAllocator, NoneInMostFiles) {
  EXPECT_THAT(Table().Found(), IsEmpty());
  EXPECT_THAT(Table().Global("main").Global("malloc").Global("free").Found(), IsEmpty());
}

TEST(LinkedAllocator, SomeNamesAreNotEnough) {
  Table table;
  table.Global("je_malloc").Global("je_free").Global("je_arena_init").Global("je_arena_boot");
  table.Global("je_base_boot").Global("je_count").Global("je_init").Global("main");
  EXPECT_THAT(table.Found(), IsEmpty());
  // Nor are the names of several, under several prefixes.
  EXPECT_THAT(Table()
                  .Global("a_arena_init")
                  .Global("b_arena_boot")
                  .Global("c_base_boot")
                  .Global("d_large_dalloc")
                  .Found(),
              IsEmpty());
  EXPECT_THAT(Table().Global("mi_malloc").Global("mi_free").Global("mi_a").Global("mi_b").Found(),
              IsEmpty());
}

// As GNU ld lays it out: the program's files, then the allocator's.
TEST(LinkedAllocator, JemallocWithItsPrefix) {
  Table table;
  table.Local("Worker", 1, "main.c").Global("main").Global("malloc_statistics");
  table.Local("arena_choose", 2, "jemalloc.c")
      .Global("malloc")
      .Local("free_default", 2, "jemalloc.c");
  table.Global("je_malloc_init_hard").Local("je_arena_boot").Local("je_large_dalloc");
  table.Local("extent_split", 3, "extent.c").Local("je_tcache_bin_flush_small");
  table.Global("_Znwm").Global("Behind").Local("Last", 4, "last.c");
  EXPECT_THAT(table.Found(),
              ElementsAre("jemalloc:arena_choose", "jemalloc:malloc", "jemalloc:free_default",
                          "jemalloc:je_malloc_init_hard", "jemalloc:je_arena_boot",
                          "jemalloc:je_large_dalloc", "jemalloc:extent_split",
                          "jemalloc:je_tcache_bin_flush_small", "jemalloc:_Znwm"));
}

TEST(LinkedAllocator, JemallocInRust) {
  Table table;
  table.Local("_RNvCs2DfDA8A3Xgh_4main4main").Global("_rjem_malloc").Global("_rjem_sdallocx");
  table.Global("_rjem_je_arena_boot").Global("_rjem_je_base_boot").Global("_rjem_je_ctl_byname");
  table.Local("_ZN4main4main17h0123456789abcdefE").Global("_rjem_je_tsd_fetch_slow");
  EXPECT_THAT(table.Found(),
              ElementsAre("jemalloc:_rjem_malloc", "jemalloc:_rjem_sdallocx",
                          "jemalloc:_rjem_je_arena_boot", "jemalloc:_rjem_je_base_boot",
                          "jemalloc:_rjem_je_ctl_byname", "jemalloc:_rjem_je_tsd_fetch_slow"));
}

// Optimised at link time, all is local and nothing has a prefix.
TEST(LinkedAllocator, JemallocWithoutPrefix) {
  Table table;
  table.Global("free").Global("malloc").Local("malloc_init_hard");
  table.Local("_RNvCs2DfDA8A3Xgh_4main4main").Local("arena_choose_hard").Local("b0get");
  table.Local("ctl_bymib").Local("arena_slab_alloc.llvm.123").Local("tsd_fetch_slow");
  table.Global("main");
  EXPECT_THAT(table.Found(),
              ElementsAre("jemalloc:free", "jemalloc:malloc", "jemalloc:malloc_init_hard",
                          "jemalloc:arena_choose_hard", "jemalloc:b0get", "jemalloc:ctl_bymib",
                          "jemalloc:arena_slab_alloc.llvm.123", "jemalloc:tsd_fetch_slow"));
}

TEST(LinkedAllocator, FunctionsOfTheProgramsOwnFilesRemainItsOwn) {
  Table table;
  table.Local("stats_add", 1, "all.c").Global("run").Local("thread_main", 1, "all.c");
  table.Local("arena_boot").Local("arena_init").Local("base_boot").Local("ctl_bymib");
  table.Local("stats_print", 2, "stats.c").Local("tsd_fetch_slow");
  EXPECT_THAT(table.Found(),
              ElementsAre("jemalloc:arena_boot", "jemalloc:arena_init", "jemalloc:base_boot",
                          "jemalloc:ctl_bymib", "jemalloc:stats_print", "jemalloc:tsd_fetch_slow"));
}

TEST(LinkedAllocator, UnlikelyPartsGoWithTheirFunctions) {
  Table table;
  table.Local("extent_split.cold").Local("work.cold").Local("je_arena_boot.cold");
  table.Global("work").Global("main").Global("je_arena_boot").Local("extent_split");
  table.Global("je_arena_init").Global("je_base_boot").Global("je_ctl_bymib");
  EXPECT_THAT(table.Found(), ElementsAre("jemalloc:extent_split.cold",
                                         "jemalloc:je_arena_boot.cold", "jemalloc:je_arena_boot",
                                         "jemalloc:extent_split", "jemalloc:je_arena_init",
                                         "jemalloc:je_base_boot", "jemalloc:je_ctl_bymib"));
}

TEST(LinkedAllocator, OthersByTheirNames) {
  EXPECT_THAT(
      Table()
          .Global("main")
          .Global("mi_malloc")
          .Global("mi_free")
          .Global("_mi_page_free")
          .Local("_mi_segment_alloc")
          .Global("_mi_heap_init")
          .Global("_mi_os_free")
          .Found(),
      ElementsAre("mimalloc:mi_malloc", "mimalloc:mi_free", "mimalloc:_mi_page_free",
                  "mimalloc:_mi_segment_alloc", "mimalloc:_mi_heap_init", "mimalloc:_mi_os_free"));
  EXPECT_THAT(
      Table()
          .Global("_ZN8tcmalloc8PageHeap3NewEm")
          .Global("_ZN8tcmalloc8PageHeap6DeleteEPNS_4SpanE")
          .Global("_ZN8tcmalloc11ThreadCache4InitEv")
          .Global("_ZNK8tcmalloc4Span4sizeEv")
          .Global("_ZdlPv")
          .Global("tc_malloc")
          .Global("_ZN7program4workEv")
          .Found(),
      ElementsAre("tcmalloc:_ZN8tcmalloc8PageHeap3NewEm",
                  "tcmalloc:_ZN8tcmalloc8PageHeap6DeleteEPNS_4SpanE",
                  "tcmalloc:_ZN8tcmalloc11ThreadCache4InitEv", "tcmalloc:_ZNK8tcmalloc4Span4sizeEv",
                  "tcmalloc:_ZdlPv", "tcmalloc:tc_malloc"));
}

TEST(LinkedAllocator, InAFile) {
  const auto in = [](const char* path) {
    LoadedFile file(path, 0x10000000);
    Modules modules(file.Options());
    const Module* const module = modules.Find(file.Symbol("main").first);
    EXPECT_NE(module, nullptr);
    return module != nullptr ? FindLinkedAllocators(*module, modules.memory())
                             : std::vector<LinkedAllocator>();
  };
  EXPECT_THAT(in(NAMES_DIRECTORY "/names_O2"), IsEmpty());
  const std::vector<LinkedAllocator> allocators = in(NAMES_DIRECTORY "/with_allocator");
  ASSERT_EQ(allocators.size(), 1U);
  EXPECT_EQ(allocators[0].name, "jemalloc");
}

}  // namespace
}  // namespace trapline
