// Names in programs built in every way that changes where names are kept.
#include "symbols/symbolizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/symbols/loaded_file.h"
#include "tests/symbols/names.h"

namespace trapline {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kBias = 0x555555554000;

// The line of names.cpp with that mark.
int MarkedLine(const std::string& mark) {
  std::ifstream file(SOURCE_DIRECTORY "/names.cpp");
  int number = 1;
  for (std::string line; std::getline(file, line); ++number) {
    if (line.ends_with("// MARK " + mark)) return number;
  }
  throw std::runtime_error("no mark " + mark);
}

struct Variant {
  std::string file;
  // Where symbols are looked up by the test itself, at the same addresses.
  std::string unstripped = file;
  std::uint64_t bias = kBias;
  bool has_lines = true;         // debug information
  bool has_atomic_types = true;  // which came with DWARF 5
  bool has_symbols = true;       // .symtab
  std::string debug_directory = "/nonexistent";
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.file; }

class SymbolizerTest : public ::testing::TestWithParam<Variant> {
 protected:
  SymbolizerTest()
      : file_(NAMES_DIRECTORY "/" + GetParam().file, GetParam().bias),
        unstripped_(NAMES_DIRECTORY "/" + GetParam().unstripped, GetParam().bias),
        modules_(file_.Options()),
        symbolizer_(modules_, [] {
          SymbolizerOptions options;
          options.debug_directory = GetParam().debug_directory;
          return options;
        }()) {}

  // Every different answer for the function's bytes.
  std::vector<CodePlace> PlacesIn(const std::string& symbol) {
    std::vector<CodePlace> places;
    const auto [begin, size] = unstripped_.Symbol(symbol);
    for (std::uint64_t pc = begin; pc < begin + size; ++pc) {
      CodePlace place = symbolizer_.ResolveCode(pc);
      if (places.empty() || places.back().frames != place.frames) places.push_back(place);
    }
    return places;
  }

  bool AnyAtomicIn(const std::string& symbol) {
    const auto [begin, size] = unstripped_.Symbol(symbol);
    for (std::uint64_t pc = begin; pc < begin + size; ++pc) {
      if (symbolizer_.IsAtomicByDebugInfo(pc)) return true;
    }
    return false;
  }

  LoadedFile file_, unstripped_;
  Modules modules_;
  Symbolizer symbolizer_;
};

TEST_P(SymbolizerTest, FunctionAndModule) {
  const auto [begin, size] = unstripped_.Symbol("_ZN5names5OuterEi");
  const CodePlace place = symbolizer_.ResolveCode(begin);
  ASSERT_NE(place.module, nullptr);
  EXPECT_EQ(place.module->name(), GetParam().file);
  EXPECT_EQ(place.offset, begin - GetParam().bias);
  if (GetParam().has_symbols || GetParam().has_lines) {
    EXPECT_EQ(place.frames.back().function, "names::Outer(int)");
  } else {
    EXPECT_EQ(place.frames.back().function, "");
  }
  EXPECT_FALSE(place.frames.back().inlined);
  if (GetParam().has_lines) {
    EXPECT_THAT(place.frames.back().file, EndsWith("/names.cpp"));
    EXPECT_NE(place.frames.back().line, 0);
  } else {
    EXPECT_THAT(place.frames.back().file, IsEmpty());
  }
}

TEST_P(SymbolizerTest, InlinedFunctions) {
  bool found = !GetParam().has_lines;
  for (const CodePlace& place : PlacesIn("_ZN5names5OuterEi")) {
    if (!GetParam().has_lines) {
      EXPECT_THAT(place.frames, ::testing::SizeIs(1));
      continue;
    }
    EXPECT_EQ(place.frames.back().function, "names::Outer(int)");
    if (place.frames.size() != 3 || place.frames[0].line != MarkedLine("innermost")) continue;
    found = true;
    EXPECT_EQ(place.frames[0].function, "names::Innermost(int)");
    EXPECT_TRUE(place.frames[0].inlined);
    EXPECT_EQ(place.frames[1].function, "names::Middle(int)");
    EXPECT_TRUE(place.frames[1].inlined);
    EXPECT_EQ(place.frames[1].line, MarkedLine("middle"));
    EXPECT_THAT(place.frames[1].file, EndsWith("/names.cpp"));
    EXPECT_EQ(place.frames[2].line, MarkedLine("outer"));
    EXPECT_FALSE(place.frames[2].inlined);
  }
  EXPECT_TRUE(found);
}

TEST_P(SymbolizerTest, GlobalVariables) {
  const auto [begin, size] = unstripped_.Symbol("_ZN5names5tableE");
  const std::uint64_t offset = size / 4 * 2 + 8;
  const auto place = symbolizer_.ResolveData(begin + offset);
  if (!GetParam().has_symbols && !GetParam().has_lines) {
    EXPECT_FALSE(place);
    return;
  }
  ASSERT_TRUE(place);
  EXPECT_EQ(place->offset, offset);
  EXPECT_EQ(place->size, size);
  if (GetParam().has_symbols) {
    EXPECT_EQ(place->symbol, "names::table");
  }
  if (GetParam().has_lines) {
    EXPECT_EQ(place->expression, "table[2].y[1]");
    EXPECT_EQ(place->type, "Point[4]");
    EXPECT_THAT(place->file, EndsWith("/names.cpp"));
  }
}

TEST_P(SymbolizerTest, PartsOfObjects) {
  if (!GetParam().has_lines) return;
  const std::uint64_t begin = unstripped_.Symbol("_ZN5names5partsE").first;
  static names::Parts own;
  const auto expression = [&](const void* part, std::uint64_t offset = 0) {
    const auto place =
        symbolizer_.ResolveData(begin +
                                static_cast<std::uint64_t>(static_cast<const char*>(part) -
                                                           reinterpret_cast<const char*>(&own)) +
                                offset);
    return place ? place->expression : "nothing";
  };
  EXPECT_EQ(expression(&own.flags), "parts.flags.{a,b}") << "a byte of both";
  EXPECT_EQ(expression(&own.flags, 5), "parts.flags.wide");
  EXPECT_EQ(expression(&own.flags, 6), "parts.flags.last");
  EXPECT_EQ(expression(&own.text[150]), "parts.text[150]");
  EXPECT_EQ(expression(&own.derived.tail), "parts.derived.tail");
  EXPECT_EQ(expression(&own.derived.reused), "parts.derived.reused");
  EXPECT_EQ(expression(&own.diamond.left), "parts.diamond.left");
  EXPECT_EQ(expression(&own.diamond.right), "parts.diamond.right");
  EXPECT_EQ(expression(&own.diamond.own), "parts.diamond.own");
}

TEST(FortranTest, ArraysCountFromOneAndByColumns) {
  LoadedFile loaded(NAMES_DIRECTORY "/libfortran_names.so", kBias);
  Modules modules(loaded.Options());
  Symbolizer symbolizer(modules);
  const std::uint64_t begin = loaded.Symbol("grid").first;
  // integer(kind=4), dimension(10,-2:2)
  const auto place = symbolizer.ResolveData(begin + 4 * (3 * 10 + 6));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->type, "integer(kind=4)(10,-2:2)");
  EXPECT_EQ(place->size, 200u);
  EXPECT_EQ(place->expression, "grid(7,1)");
}

TEST_P(SymbolizerTest, StaticVariables) {
  const bool has_names = GetParam().has_symbols || GetParam().has_lines;
  const auto in_function =
      symbolizer_.ResolveData(unstripped_.Symbol("_ZZN5names10CountCallsEvE5calls").first);
  ASSERT_EQ(in_function.has_value(), has_names);
  if (!has_names) return;
  EXPECT_EQ(in_function->symbol, GetParam().has_symbols ? "names::CountCalls()::calls" : "calls");
  const auto in_file =
      symbolizer_.ResolveData(unstripped_.Symbol("_ZN5namesL11file_staticE").first);
  ASSERT_TRUE(in_file);
  EXPECT_THAT(in_file->symbol, EndsWith("file_static"));
}

TEST_P(SymbolizerTest, OutsideOfVariables) {
  const auto [begin, size] = unstripped_.Symbol("_ZN5names5OuterEi");
  EXPECT_FALSE(symbolizer_.ResolveData(begin));
  EXPECT_FALSE(symbolizer_.ResolveData(0x1000));
}

TEST_P(SymbolizerTest, AtomicOperations) {
  // Inlined here even without optimisation: the library asks for it.
  for (const char* name : {"_ZN5names10LoadAtomicEv", "_ZN5names11StoreAtomicEi"})
    EXPECT_EQ(AnyAtomicIn(name), GetParam().has_lines) << name;
  EXPECT_FALSE(AnyAtomicIn("_ZN5names9LoadPlainEv"));
  EXPECT_FALSE(AnyAtomicIn("_ZN5names5OuterEi"));
  EXPECT_FALSE(AnyAtomicIn("_ZN5names10CountCallsEv"));
}

TEST_P(SymbolizerTest, AtomicVariables) {
  const bool known = GetParam().has_lines;
  const bool known_in_c = known && GetParam().has_atomic_types;
  const auto is_atomic = [&](const char* name, std::uint64_t offset, std::uint64_t size = 1) {
    const std::uint64_t address = unstripped_.Symbol(name).first + offset;
    modules_.Find(address);  // as after any stack was taken
    return symbolizer_.IsAtomicVariable(address, size);
  };
  EXPECT_EQ(is_atomic("names_atomic", 0), known);
  EXPECT_EQ(is_atomic("names_atomic", 3), known);
  EXPECT_EQ(is_atomic("names_atomic", 0, 4), known);
  EXPECT_FALSE(is_atomic("names_atomic", 0, 8)) << "more than it is";
  EXPECT_FALSE(is_atomic("names_atomic", 2, 4)) << "more than is left of it";
  EXPECT_FALSE(is_atomic("names_sink", 0));
  EXPECT_FALSE(is_atomic("_ZN5names12plain_globalE", 0));
  EXPECT_EQ(is_atomic("_ZN5names5tableE", 16), known);
  EXPECT_FALSE(is_atomic("_ZN5names5tableE", 8));
  EXPECT_EQ(is_atomic("_ZN5names5tableE", 24 + 16), known);
  EXPECT_FALSE(is_atomic("_ZN5names5tableE", 24 + 12));
  EXPECT_EQ(is_atomic("c_atomic", 0), known_in_c);
  EXPECT_FALSE(is_atomic("c_plain", 0));
  EXPECT_FALSE(is_atomic("c_mixed", 0));
  EXPECT_EQ(is_atomic("c_mixed", 8), known_in_c);
  EXPECT_EQ(is_atomic("c_mixed", 8 + 24), known_in_c);
  // The flag that says whether a static variable is made already.
  EXPECT_EQ(is_atomic("_ZGVZN5names6LazilyEvE4lazy", 0), GetParam().has_symbols);
  EXPECT_FALSE(is_atomic("_ZZN5names6LazilyEvE4lazy", 0));
  // The same again, from what is remembered.
  EXPECT_EQ(is_atomic("names_atomic", 0), known);
  EXPECT_FALSE(is_atomic("names_sink", 0));
}

TEST_P(SymbolizerTest, NothingIsInvented) {
  const CodePlace place = symbolizer_.ResolveCode(0x1234);
  EXPECT_EQ(place.module, nullptr);
  ASSERT_EQ(place.frames.size(), 1u);
  EXPECT_EQ(place.frames[0], SourceFrame());
  EXPECT_FALSE(symbolizer_.IsAtomicByDebugInfo(0x1234));
  EXPECT_FALSE(symbolizer_.IsAtomicVariable(0x1234, 1));
}

// It has atomic variables, and the guard of a static one.
TEST_P(SymbolizerTest, MayHoldAtomics) {
  modules_.Refresh();
  ASSERT_EQ(modules_.Loaded().size(), 1u);
  EXPECT_TRUE(symbolizer_.MayHoldAtomics(*modules_.Loaded().front()));
}

TEST(SymbolizerOfPlainProgramTest, HoldsNoAtomics) {
  LoadedFile file(FRAMES_DIRECTORY "/frames_O2", kBias);
  Modules modules(file.Options());
  Symbolizer symbolizer(modules);
  modules.Refresh();
  ASSERT_EQ(modules.Loaded().size(), 1u);
  EXPECT_FALSE(symbolizer.MayHoldAtomics(*modules.Loaded().front()));
}

INSTANTIATE_TEST_SUITE_P(
    Builds, SymbolizerTest,
    ::testing::Values(Variant{.file = "names_O0"}, Variant{.file = "names_O2"},
                      Variant{.file = "names_dwarf4", .has_atomic_types = false},
                      Variant{.file = "names_compressed"}, Variant{.file = "names_split"},
                      Variant{.file = "names_static", .bias = 0},
                      Variant{.file = "names_g0", .has_lines = false},
                      Variant{.file = "names_stripped",
                              .unstripped = "names_O2",
                              .has_lines = false,
                              .has_symbols = false},
                      Variant{.file = "names_linked", .unstripped = "names_O2"},
                      Variant{.file = "names_stripped",
                              .unstripped = "names_O2",
                              .debug_directory = NAMES_DIRECTORY "/debug"}),
    [](const auto& variant) {
      return variant.param.file +
             (variant.param.debug_directory == "/nonexistent" ? "" : "_by_build_id");
    });

// Of this process, whose C library may have a separate debug file.
TEST(SymbolizerOfThisProcessTest, NamesOutlastTheRelease) {
  Modules modules;
  Symbolizer symbolizer(modules);
  const auto at = [](auto* function) { return reinterpret_cast<std::uint64_t>(function) + 1; };
  const CodePlace before = symbolizer.ResolveCode(at(&std::getenv));
  ASSERT_NE(before.module, nullptr);
  ASSERT_THAT(before.module->path, HasSubstr("libc.so"));
  // More often than files are read again.
  for (int i = 0; i < 20; ++i) {
    symbolizer.ReleaseLibraries();
    EXPECT_EQ(symbolizer.ResolveCode(at(&std::getenv)).frames, before.frames);
    EXPECT_THAT(symbolizer.ResolveCode(at(&std::abort) + i).frames.back().function,
                HasSubstr("abort"));
  }
}

TEST(DemangleTest, Names) {
  EXPECT_EQ(Demangle("_ZN5names5OuterEi"), "names::Outer(int)");
  EXPECT_EQ(Demangle("main"), "main");
  EXPECT_EQ(Demangle("_Znot mangled"), "_Znot mangled");
  EXPECT_EQ(Demangle(""), "");
  EXPECT_EQ(Demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt");
}

}  // namespace
}  // namespace trapline
