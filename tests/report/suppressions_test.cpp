#include "tools/suppressions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace trapline {
namespace {

using ::testing::HasSubstr;

TEST(GlobTest, Matches) {
  EXPECT_TRUE(GlobMatches("", ""));
  EXPECT_FALSE(GlobMatches("", "a"));
  EXPECT_TRUE(GlobMatches("*", ""));
  EXPECT_TRUE(GlobMatches("*", "anything"));
  EXPECT_TRUE(GlobMatches("a?c", "abc"));
  EXPECT_FALSE(GlobMatches("a?c", "ac"));
  EXPECT_TRUE(GlobMatches("a*c", "ac"));
  EXPECT_TRUE(GlobMatches("a*b*c", "a-b-b-c"));
  EXPECT_FALSE(GlobMatches("a*b*c", "a-c-b"));
  EXPECT_TRUE(GlobMatches("lib*.so*", "libc.so.6"));
  EXPECT_FALSE(GlobMatches("abc", "abcd"));
  EXPECT_FALSE(GlobMatches("abcd", "abc"));
}

// Exponential in a matcher that backtracks to every star.
TEST(GlobTest, ManyStarsEndSoon) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(GlobMatches(pattern + "b", std::string(20000, 'a')));
}

Suppressions Of(const std::string& text) {
  Suppressions suppressions;
  const Status status = suppressions.Parse(text, "test");
  EXPECT_TRUE(status.ok()) << status.message();
  return suppressions;
}

TEST(SuppressionsTest, CommentsAndBlanks) {
  const Suppressions suppressions = Of("# comment\n\n  \t\n race:one \r\n\trace: two\n#race:three");
  ASSERT_EQ(suppressions.rules().size(), 2u);
  EXPECT_EQ(suppressions.rules()[0].pattern, "one");
  EXPECT_EQ(suppressions.rules()[0].line, 4);
  EXPECT_EQ(suppressions.rules()[1].pattern, "two");
  EXPECT_EQ(suppressions.rules()[1].line, 5);
}

TEST(SuppressionsTest, Functions) {
  const auto matches = [](const char* pattern, const char* function) {
    return Of(std::string("race:") + pattern).Matches(function, "", "");
  };
  EXPECT_TRUE(matches("main", "main"));
  EXPECT_FALSE(matches("main", "domain"));
  EXPECT_FALSE(matches("main", "main2"));
  EXPECT_TRUE(matches("Count", "app::Counter::Count(int)"));
  EXPECT_TRUE(matches("Counter::Count", "app::Counter::Count(int)"));
  EXPECT_TRUE(matches("app::Counter::Count", "app::Counter::Count(int)"));
  EXPECT_TRUE(matches("app::Counter::Count(int)", "app::Counter::Count(int)"));
  EXPECT_FALSE(matches("Counter", "app::Counter::Count(int)"));
  EXPECT_FALSE(matches("app", "app::Counter::Count(int)"));
  EXPECT_TRUE(matches("app::*", "app::Counter::Count(int)"));
  EXPECT_TRUE(matches("Run", "(anonymous namespace)::Run(app::Config const&)"));
  EXPECT_FALSE(matches("Config const&)", "(anonymous namespace)::Run(app::Config const&)"));
  EXPECT_TRUE(matches("push_back", "std::vector<a::B, std::allocator<a::B> >::push_back(a::B&&)"));
  EXPECT_FALSE(matches("B*", "std::vector<a::B, std::allocator<a::B> >::push_back(a::B&&)"));
  EXPECT_TRUE(matches("Apply<int>", "void app::Apply<int>(int)"));
  EXPECT_TRUE(matches("operator()", "app::Run()::{lambda()#1}::operator()() const"));
  EXPECT_TRUE(matches("operator<<", "app::operator<<(std::ostream&, int)"));
  EXPECT_FALSE(matches("*", ""));
}

TEST(SuppressionsTest, FilesAndModules) {
  const Suppressions file = Of("race:counter.cpp");
  EXPECT_TRUE(file.Matches("f", "/src/app/counter.cpp", ""));
  EXPECT_TRUE(file.Matches("f", "counter.cpp", ""));
  EXPECT_FALSE(file.Matches("f", "/src/app/mycounter.cpp", ""));
  EXPECT_FALSE(file.Matches("f", "/src/counter.cpp/other", ""));
  EXPECT_TRUE(Of("race:app/*.cpp").Matches("", "/src/app/counter.cpp", ""));
  EXPECT_TRUE(Of("race:/src/*").Matches("", "/src/app/counter.cpp", ""));
  EXPECT_TRUE(Of("race:libfoo.so*").Matches("", "", "/usr/lib/libfoo.so.1"));
  EXPECT_FALSE(Of("race:libfoo.so").Matches("", "", "/usr/lib/libfoo.so.1"));
}

TEST(SuppressionsTest, NoRulesMatchNothing) {
  EXPECT_FALSE(Suppressions().Matches("main", "main.cpp", "/bin/main"));
}

TEST(SuppressionsTest, Errors) {
  const auto error = [](const char* text) {
    Suppressions suppressions;
    const Status status = suppressions.Parse(text, "file.supp");
    EXPECT_TRUE(suppressions.rules().empty());
    return status.message();
  };
  EXPECT_THAT(error("race:good\n\nmutex:other\n"), HasSubstr("file.supp:3: 'mutex:other' is no"));
  EXPECT_THAT(error("{\n   some_valgrind_name\n"), HasSubstr("file.supp:1: '{'"));
  EXPECT_THAT(error("race:  \n"), HasSubstr("file.supp:1: nothing after 'race:'"));
  EXPECT_THAT(error("\x01\x02:x"), HasSubstr("file.supp:1: '??:x'"));
  EXPECT_THAT(error(std::string(500, 'x').c_str()), HasSubstr("xxx...' is no suppression"));
}

TEST(SuppressionsTest, ReadsFiles) {
  const std::string path = ::testing::TempDir() + "/suppressions_test.supp";
  std::ofstream(path) << "race:f\n";
  Suppressions suppressions;
  EXPECT_TRUE(suppressions.ReadFile(path).ok());
  EXPECT_TRUE(suppressions.Matches("f", "", ""));
  EXPECT_THAT(suppressions.ReadFile("/nonexistent/file").message(),
              HasSubstr("cannot read the suppressions in '/nonexistent/file': No such file"));
  EXPECT_THAT(suppressions.ReadFile("/").message(), HasSubstr("Is a directory"));
  EXPECT_EQ(suppressions.rules().size(), 1u);
}

}  // namespace
}  // namespace trapline
