// Which lines of a source name atomic operations.
#include "symbols/source_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace trapline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(AtomicLines, FunctionsByName) {
  EXPECT_THAT(AtomicLines("x = 1;\n"
                          "__atomic_store_n(&x, 1, __ATOMIC_RELEASE);\n"
                          "while (!atomic_load_explicit(&x, o)) {}\n"
                          "y = atomic_load(&x);\n"
                          "__sync_lock_release(&x);"),
              ElementsAre(2, 3, 4, 5));
}

TEST(AtomicLines, OtherWordsAreNone) {
  EXPECT_THAT(AtomicLines("my__atomic_load_n(&x);\n"
                          "atomic_loader(x);\n"
                          "atomic_int x;\n"
                          "atomic_fetch_add(&x, 1);\n"),
              IsEmpty());
}

TEST(AtomicLines, TheStatementAfterAPragma) {
  EXPECT_THAT(AtomicLines("#pragma omp atomic write\n"
                          "y = 1;\n"
                          "x = 1;\n"),
              ElementsAre(1, 2));
  EXPECT_THAT(AtomicLines("  #  pragma omp  atomic \\\n"
                          "      read acquire\n"
                          "\n"
                          "v =\n"
                          "    x;\n"
                          "z = 1;\n"),
              ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(AtomicLines("#pragma omp atomic capture\n"
                          "{ v = x;\n"
                          "  x = w; }\n"
                          "z = 1;\n"),
              ElementsAre(1, 2, 3));
}

TEST(AtomicLines, OtherPragmasAreNone) {
  EXPECT_THAT(AtomicLines("#pragma omp atomically\nx = 1;\n#pragma omp critical\nx = 1;\n"),
              IsEmpty());
}

TEST(ExchangeLines, NotTheComparingOnes) {
  EXPECT_THAT(ExchangeLines("__atomic_exchange_n(&x, 1, __ATOMIC_RELEASE);\n"
                            "x.compare_exchange_weak(e, 1);\n"
                            "x.exchange(1);\n"
                            "x.fetch_and(0);\n"
                            "x.fetch_add(1);\n"),
              ElementsAre(1, 3, 4));
}

TEST(AtomicLines, AnyTextEnds) {
  EXPECT_THAT(AtomicLines(""), IsEmpty());
  EXPECT_THAT(AtomicLines("#pragma omp atomic"), ElementsAre(1));
  EXPECT_THAT(AtomicLines("#pragma omp atomic\n{{{"), ElementsAre(1, 2));
}

TEST(SourceLines, AYoungerFileTellsNothing) {
  char name[] = "/tmp/source_lines_XXXXXX";
  const int descriptor = mkstemp(name);
  ASSERT_GE(descriptor, 0);
  close(descriptor);
  std::ofstream(name) << "__atomic_load_n(&x, 0);\n";
  struct stat status = {};
  ASSERT_EQ(stat(name, &status), 0);
  SourceLines lines;
  EXPECT_TRUE(lines.IsAtomic(name, 1, status.st_mtime));
  EXPECT_FALSE(lines.IsAtomic(name, 1, status.st_mtime - 1));
  EXPECT_FALSE(lines.IsAtomic(name, 2, status.st_mtime));
  EXPECT_FALSE(lines.IsAtomic("/nonexistent", 1, status.st_mtime));
  EXPECT_FALSE(lines.IsAtomic("", 1, status.st_mtime));
  unlink(name);
}

}  // namespace
}  // namespace trapline
