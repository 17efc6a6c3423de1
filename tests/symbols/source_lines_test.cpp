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

TEST(AtomicLines, OtherSpellingsOfThePragma) {
  EXPECT_THAT(AtomicLines("#pragma omp \\\n"
                          "    atomic read\n"
                          "v = x;\n"
                          "z = 1;\n"
                          "_Pragma(\"omp atomic write\") x = 1;\n"
                          "z = 1;\n"
                          "_Pragma ( \"omp atomic\" )\n"
                          "x++;\n"
                          "z = 1;\n"
                          "[[omp::directive(atomic read)]] v = x;\n"
                          "z = 1;\n"),
              ElementsAre(1, 2, 3, 5, 7, 8, 10));
  EXPECT_THAT(
      AtomicLines(
          "#define ATOMIC _Pragma(\"omp atomic\")\nz = 1;\n_Pragma(\"omp flush\") z = 1;\n"),
      ElementsAre(1));
  EXPECT_THAT(AtomicLines("#define READ(v, x) \\\n"
                          "    _Pragma(\"omp atomic read\") \\\n"
                          "    v = x\n"
                          "z = 1;\n"),
              ElementsAre(1, 2, 3));
  EXPECT_THAT(AtomicLines("__atomic_clear(&x, 0);\natomic_flag_clear_explicit(f, o);\n"),
              ElementsAre(1, 2));
}

TEST(AtomicLines, TheStatementsAfterAFortranDirective) {
  EXPECT_THAT(AtomicLines("  !$omp atomic read\n"
                          "  ! a comment\n"
                          "  v = x\n"
                          "  z = 1\n"
                          "  !$OMP ATOMIC CAPTURE\n"
                          "  v = x\n"
                          "  x = x + &\n"
                          "      1\n"
                          "  !$omp end atomic\n"
                          "c$omp atomic write\n"
                          "      x = 1\n"
                          "      z = 1\n"),
              ElementsAre(1, 3, 5, 6, 7, 8, 10, 11));
  EXPECT_THAT(AtomicLines("!$omp atomically\nx = 1\n!$omp critical\nx = 1\n c$omp atomic\nx = 1\n"),
              IsEmpty());
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
