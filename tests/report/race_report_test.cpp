// Races as text and JSON. The stacks lie in programs that are only as if loaded.
#include "tools/race_report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/symbols/loaded_file.h"

namespace trapline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kBias = 0x555555554000;

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// A program with its symbols (names_O2) or without any (names_stripped).
class Program {
 public:
  explicit Program(const std::string& name)
      : file_(NAMES_DIRECTORY "/" + name, kBias),
        unstripped_(NAMES_DIRECTORY "/names_O2", kBias),
        modules_(file_.Options()),
        symbolizer_(modules_, {.debug_directory = "/nonexistent", .use_files = true}) {}

  Symbolizer& symbolizer() { return symbolizer_; }
  Modules& modules() { return modules_; }
  // Nothing is inlined at the first instruction, which a return address of one more stands for.
  std::uint64_t At(const std::string& symbol) const { return unstripped_.Symbol(symbol).first; }

  // An instruction of Outer that was inlined into it.
  std::uint64_t Inlined() const {
    const auto [begin, size] = unstripped_.Symbol("_ZN5names5OuterEi");
    LoadedFile with_names(NAMES_DIRECTORY "/names_O2", kBias);
    Modules modules(with_names.Options());
    Symbolizer symbolizer(modules);
    for (std::uint64_t pc = begin; pc < begin + size; ++pc) {
      if (symbolizer.ResolveCode(pc).frames.size() == 3) return pc;
    }
    throw std::runtime_error("nothing inlined");
  }

  // Two threads that write to the same global.
  RaceReport Race() const {
    RaceReport race;
    race.process = 42;
    race.location = GlobalLocation{};
    for (int i = 0; i < 2; ++i) {
      ReportAccess& access = race.accesses[i];
      access.thread = {.id = static_cast<std::uint32_t>(i + 1),
                       .tid = 100 + i,
                       .name = i == 0 ? "reader" : "writer",
                       .parent = 0,
                       .creation_stack = {At("main") + 1}};
      access.operation = i == 0 ? AccessOperation::kRead : AccessOperation::kWrite;
      access.size = 4;
      access.address = At("_ZN5names5tableE") + 24 + 4;
    }
    race.accesses[0].stack = {At("_ZN5names9LoadPlainEv"), At("main") + 1};
    race.accesses[1].stack = {Inlined(), At("_ZN5names10CountCallsEv") + 1, At("main") + 1};
    race.accesses[1].locks = {{.address = 0x7000, .kind = "mutex", .acquisition_stack = {}}};
    return race;
  }

 private:
  LoadedFile file_, unstripped_;
  Modules modules_;
  Symbolizer symbolizer_;
};

// What differs from build to build made the same.
std::string Normalised(std::string text) {
  text = std::regex_replace(text, std::regex("\\+0x[0-9a-f]+\\)"), "+OFFSET)");
  text = std::regex_replace(text, std::regex("\\+0x[0-9a-f]+\n"), "+OFFSET\n");
  text = std::regex_replace(text, std::regex("0x5555[0-9a-f]+"), "ADDRESS");
  text = std::regex_replace(text, std::regex("/[^ ]*/names\\.cpp:[0-9]+"), "names.cpp:LINE");
  return Replaced(text, NAMES_DIRECTORY, "DIRECTORY");
}

TEST(RaceTextTest, WithDebugInformation) {
  Program program("names_O2");
  RaceReports reports(program.symbolizer(), {});
  const auto text = reports.Add(program.Race());
  ASSERT_TRUE(text);
  EXPECT_EQ(Normalised(*text), R"(trapline: data race (read-write) on global 'table[1].y[0]'
  later   write of 4 bytes at ADDRESS by thread 2 'writer'
    #0 names::Innermost(int) names.cpp:LINE (inlined)
    #1 names::Middle(int) names.cpp:LINE (inlined)
    #2 names::Outer(int) names.cpp:LINE (names_O2+OFFSET)
    #3 names::CountCalls() names.cpp:LINE (names_O2+OFFSET)
    #4 main names.cpp:LINE (names_O2+OFFSET)
    holding mutex 0x7000
  earlier read of 4 bytes at ADDRESS by thread 1 'reader'
    #0 names::LoadPlain() names.cpp:LINE (names_O2+OFFSET)
    #1 main names.cpp:LINE (names_O2+OFFSET)
  ADDRESS is names::table+0x1c (Point[4], 96 bytes, names.cpp:LINE, names_O2)
  thread 1 'reader' (tid 100) was created by thread 0 at
    #0 main names.cpp:LINE (names_O2+OFFSET)
  thread 2 'writer' (tid 101) was created by thread 0 at
    #0 main names.cpp:LINE (names_O2+OFFSET)

)");
}

TEST(RaceTextTest, WithoutAnySymbols) {
  Program program("names_stripped");
  RaceReports reports(program.symbolizer(), {});
  const auto text = reports.Add(program.Race());
  ASSERT_TRUE(text);
  EXPECT_EQ(Normalised(*text), R"(trapline: data race (read-write) on global data of names_stripped
  later   write of 4 bytes at ADDRESS by thread 2 'writer'
    #0 DIRECTORY/names_stripped+OFFSET
    #1 DIRECTORY/names_stripped+OFFSET
    #2 DIRECTORY/names_stripped+OFFSET
    holding mutex 0x7000
  earlier read of 4 bytes at ADDRESS by thread 1 'reader'
    #0 DIRECTORY/names_stripped+OFFSET
    #1 DIRECTORY/names_stripped+OFFSET
  ADDRESS is DIRECTORY/names_stripped+OFFSET
  thread 1 'reader' (tid 100) was created by thread 0 at
    #0 DIRECTORY/names_stripped+OFFSET
  thread 2 'writer' (tid 101) was created by thread 0 at
    #0 DIRECTORY/names_stripped+OFFSET

)");
}

TEST(RaceTextTest, HeapBlock) {
  Program program("names_O2");
  RaceReports reports(program.symbolizer(), {});
  RaceReport race = program.Race();
  race.accesses[0] = {
      .thread = {.id = 0, .tid = 99, .name = "names", .parent = 0, .creation_stack = {}},
      .operation = AccessOperation::kWrite,
      .size = 8,
      .address = 0x600010,
      .stack = {program.At("main")},
      .locks = {{.address = 0x7040,
                 .kind = "rwlock (shared)",
                 .acquisition_stack = {program.At("main") + 1}}},
      .generation = 0};
  race.accesses[1].address = 0x600014;
  race.accesses[1].size = 1;
  race.location = HeapLocation{.start = 0x600000,
                               .size = 40,
                               .allocation_stack = {program.At("main") + 1},
                               .allocated_by = race.accesses[0].thread,
                               .freed = true,
                               .free_stack = {},
                               .freed_by = race.accesses[1].thread};
  const auto text = reports.Add(race);
  ASSERT_TRUE(text);
  EXPECT_EQ(Normalised(*text),
            R"(trapline: data race (write-write) on a freed heap block of 40 bytes
  later   write of 1 byte at 0x600014 by thread 2 'writer'
    #0 names::Innermost(int) names.cpp:LINE (inlined)
    #1 names::Middle(int) names.cpp:LINE (inlined)
    #2 names::Outer(int) names.cpp:LINE (names_O2+OFFSET)
    #3 names::CountCalls() names.cpp:LINE (names_O2+OFFSET)
    #4 main names.cpp:LINE (names_O2+OFFSET)
    holding mutex 0x7000
  earlier write of 8 bytes at 0x600010 by thread 0 'names' (initial)
    #0 main names.cpp:LINE (names_O2+OFFSET)
    holding rwlock (shared) 0x7040, taken at
      #0 main names.cpp:LINE (names_O2+OFFSET)
  0x600014 is 20 bytes into a heap block of 40 bytes at 0x600000, allocated by thread 0 'names' (initial) at
    #0 main names.cpp:LINE (names_O2+OFFSET)
  and freed by thread 2 'writer' at
    (call stack not known)
  thread 2 'writer' (tid 101) was created by thread 0 at
    #0 main names.cpp:LINE (names_O2+OFFSET)

)");
}

TEST(RaceTextTest, OtherPlaces) {
  Program program("names_O2");
  RaceReport race = program.Race();
  for (ReportAccess& access : race.accesses) access.address = 0x7f0000001000;
  const auto text_of = [&](ReportLocation location) {
    race.location = std::move(location);
    RaceReports reports(program.symbolizer(), {});
    return reports.Add(race).value_or("");
  };
  EXPECT_THAT(text_of(UnknownLocation{}), HasSubstr("on memory at 0x7f0000001000\n"));
  EXPECT_THAT(text_of(StackLocation{.thread = race.accesses[0].thread, .frames = {}}),
              HasSubstr("on the stack of thread 1 'reader'\n"));
  EXPECT_THAT(text_of(ThreadLocalLocation{.thread = race.accesses[0].thread, .thread_pointer = 0}),
              HasSubstr("on thread-local data of thread 1 'reader'\n"));
  const std::string mapping = text_of(MappingLocation{.path = "/data/file", .offset = 0x1000});
  EXPECT_THAT(mapping, HasSubstr("on a mapping of /data/file\n"));
  EXPECT_THAT(mapping, HasSubstr("  0x7f0000001000 is offset 0x1000 of /data/file\n"));
  EXPECT_THAT(text_of(MappingLocation{}), HasSubstr("on mapped memory\n"));
}

TEST(RaceKindTest, FromTheOperations) {
  const auto kind = [](AccessOperation a, AccessOperation b) {
    RaceReport race;
    race.accesses[0].operation = a;
    race.accesses[1].operation = b;
    return RaceKind(race);
  };
  constexpr auto kRead = AccessOperation::kRead, kWrite = AccessOperation::kWrite,
                 kAtomic = AccessOperation::kAtomic;
  EXPECT_EQ(kind(kWrite, kWrite), "write-write");
  EXPECT_EQ(kind(kRead, kWrite), "read-write");
  EXPECT_EQ(kind(kWrite, kRead), "read-write");
  EXPECT_EQ(kind(kAtomic, kWrite), "atomic-plain");
  EXPECT_EQ(kind(kRead, kAtomic), "atomic-plain");
}

void ExpectStack(const json& stack) {
  ASSERT_TRUE(stack.is_array());
  for (const json& frame : stack) {
    EXPECT_TRUE(frame["function"].is_string());
    EXPECT_TRUE(frame["file"].is_string());
    EXPECT_TRUE(frame["line"].is_number_integer());
    EXPECT_TRUE(frame["module"].is_string());
    EXPECT_THAT(frame["address"].get<std::string>(), ::testing::StartsWith("0x"));
  }
}

// What the documentation promises of every race.
void ExpectForm(const json& race) {
  EXPECT_TRUE(race["kind"].is_string());
  EXPECT_TRUE(race["location"]["kind"].is_string());
  EXPECT_TRUE(race["location"]["symbol"].is_string());
  EXPECT_TRUE(race["location"]["offset"].is_number_unsigned());
  EXPECT_TRUE(race["process"].is_number_integer());
  EXPECT_TRUE(race["occurrences"].is_number_unsigned());
  ASSERT_EQ(race["accesses"].size(), 2u);
  for (const json& access : race["accesses"]) {
    EXPECT_TRUE(access["thread"]["id"].is_number_unsigned());
    EXPECT_TRUE(access["thread"]["name"].is_string());
    EXPECT_THAT(access["op"].get<std::string>(), ::testing::AnyOf("read", "write", "atomic"));
    EXPECT_TRUE(access["size"].is_number_unsigned());
    EXPECT_THAT(access["address"].get<std::string>(), ::testing::StartsWith("0x"));
    ExpectStack(access["stack"]);
    ASSERT_TRUE(access["locks"].is_array());
  }
}

TEST(RaceJsonTest, Form) {
  for (const char* name : {"names_O2", "names_stripped"}) {
    Program program(name);
    RaceReports reports(program.symbolizer(), {}, {.program = "/bin/names"});
    RaceReport race = program.Race();
    reports.Add(race);
    race.accesses[0].stack = {program.At("main")};
    race.location = HeapLocation{.start = 0x1000, .size = 8, .freed = true};
    reports.Add(race);
    const json part = reports.ToJson();
    EXPECT_EQ(part["process"]["program"], "/bin/names");
    EXPECT_EQ(part["process"]["process"], getpid());
    ASSERT_EQ(part["races"].size(), 2u);
    for (const json& object : part["races"]) ExpectForm(object);
  }
}

TEST(RaceJsonTest, Content) {
  Program program("names_O2");
  RaceReports reports(program.symbolizer(), {});
  reports.Add(program.Race());
  const json race = reports.ToJson()["races"][0];
  EXPECT_EQ(race["kind"], "read-write");
  EXPECT_EQ(race["location"]["kind"], "global");
  EXPECT_EQ(race["location"]["symbol"], "names::table");
  EXPECT_EQ(race["location"]["offset"], 28);
  EXPECT_EQ(race["location"]["expression"], "table[1].y[0]");
  EXPECT_EQ(race["accesses"][0]["op"], "read");
  EXPECT_EQ(race["accesses"][0]["thread"]["name"], "reader");
  EXPECT_EQ(race["accesses"][1]["op"], "write");
  EXPECT_EQ(race["accesses"][1]["thread"]["id"], 2);
  EXPECT_EQ(race["accesses"][1]["stack"][0]["function"], "names::Innermost(int)");
  EXPECT_EQ(race["accesses"][1]["stack"][0]["inlined"], true);
  EXPECT_EQ(race["accesses"][1]["stack"][2]["module"], NAMES_DIRECTORY "/names_O2");
  EXPECT_EQ(race["accesses"][1]["locks"][0]["kind"], "mutex");
  EXPECT_EQ(race["accesses"][1]["locks"][0]["address"], "0x7000");
  EXPECT_EQ(race["process"], 42);
}

TEST(RaceReportsTest, OneForEachPairOfPlaces) {
  Program program("names_O2");
  RaceReports reports(program.symbolizer(), {});
  RaceReport race = program.Race();
  EXPECT_TRUE(reports.Add(race));
  EXPECT_FALSE(reports.Add(race));
  std::swap(race.accesses[0], race.accesses[1]);
  EXPECT_FALSE(reports.Add(race));
  // Called from elsewhere, another address: the same places.
  race.accesses[0].stack.pop_back();
  race.accesses[0].address += 24;
  race.accesses[1].address += 24;
  EXPECT_FALSE(reports.Add(race));
  // Another instruction.
  race.accesses[0].stack[0] = program.At("main");
  EXPECT_TRUE(reports.Add(race));
  EXPECT_EQ(reports.races(), 2u);
  EXPECT_EQ(reports.Summary(false), "trapline: 2 races (5 occurrences)\n");
  EXPECT_EQ(reports.ToJson()["races"][0]["occurrences"], 4);

  EXPECT_TRUE(reports.AddOccurrence(race.accesses[1].stack[0], race.accesses[0].stack[0]));
  EXPECT_TRUE(reports.AddOccurrence(race.accesses[0].stack[0], race.accesses[1].stack[0]));
  EXPECT_FALSE(reports.AddOccurrence(race.accesses[0].stack[0], race.accesses[1].stack[0] + 1));
  EXPECT_EQ(reports.Summary(false), "trapline: 2 races (7 occurrences)\n");
}

TEST(RaceReportsTest, WithoutStacksByAddress) {
  Program program("names_O2");
  RaceReports reports(program.symbolizer(), {});
  RaceReport race = program.Race();
  race.accesses[0].stack.clear();
  race.accesses[1].stack.clear();
  EXPECT_THAT(reports.Add(race).value_or(""), HasSubstr("(call stack not known)"));
  EXPECT_FALSE(reports.Add(race));
  race.accesses[0].address += 1;
  EXPECT_TRUE(reports.Add(race));
}

TEST(RaceReportsTest, HiddenModules) {
  Program program("names_O2");
  RaceReports shown(program.symbolizer(), {});
  RaceReports hidden(program.symbolizer(), {}, {.hidden_modules = {"names_*"}, .program = ""});
  // All of a stack is hidden: then it is shown after all.
  EXPECT_EQ(hidden.Add(program.Race()), shown.Add(program.Race()));
  // A place in no module is not hidden, and so it is the place.
  RaceReport race = program.Race();
  for (ReportAccess& access : race.accesses) access.stack = {program.At("main"), 0x100000};
  const std::string text = hidden.Add(race).value_or("");
  EXPECT_THAT(text, HasSubstr("\n    #0 0x100000\n"));
  EXPECT_THAT(text, Not(HasSubstr("    #0 main names.cpp\n    #1")));
  race.accesses[0].stack[0] = program.At("_ZN5names5OuterEi");
  EXPECT_FALSE(hidden.Add(race));
  // So different callers of the same hidden function are not taken for one.
  EXPECT_FALSE(hidden.AddOccurrence(program.At("main"), program.At("main")));
}

TEST(RaceReportsTest, PlacesOfTheCallersChoice) {
  Program program("names_O2");
  RaceReports reports(program.symbolizer(), {});
  RaceReport race = program.Race();
  EXPECT_TRUE(reports.Add(race));
  race.accesses[1].place = race.accesses[1].stack[1] - 1;
  EXPECT_TRUE(reports.Add(race));
  EXPECT_FALSE(reports.Add(race));
  race.accesses[1].place = race.accesses[1].stack[0];
  EXPECT_FALSE(reports.Add(race));
  EXPECT_EQ(reports.Summary(false), "trapline: 2 races (4 occurrences)\n");
}

TEST(RaceReportsTest, Suppressed) {
  Program program("names_O2");
  const auto summary = [&](const char* rule) {
    Suppressions suppressions;
    EXPECT_TRUE(suppressions.Parse(rule, "test").ok());
    RaceReports reports(program.symbolizer(), suppressions);
    const bool printed = reports.Add(program.Race()).has_value();
    EXPECT_FALSE(reports.Add(program.Race()));
    EXPECT_EQ(reports.ToJson()["races"].size(), printed ? 1u : 0u);
    EXPECT_EQ(reports.ToJson()["process"]["suppressed"], printed ? 0 : 1);
    return reports.Summary(true);
  };
  const std::string suppressed = "trapline: no races, 1 suppressed\n";
  const std::string found = "trapline: 1 race (2 occurrences)\n";
  EXPECT_EQ(summary("race:Innermost"), suppressed);     // an inlined function
  EXPECT_EQ(summary("race:LoadPlain"), suppressed);     // of the earlier access
  EXPECT_EQ(summary("race:names.cpp"), suppressed);     // a file
  EXPECT_EQ(summary("race:names_O2"), suppressed);      // a module
  EXPECT_EQ(summary("race:names::table"), suppressed);  // the variable
  EXPECT_EQ(summary("race:StoreAtomic"), found);
  EXPECT_EQ(summary(""), found);
}

TEST(RaceReportsTest, NothingToSay) {
  Program program("names_O2");
  RaceReports reports(program.symbolizer(), {});
  EXPECT_EQ(reports.Summary(false), "");
  EXPECT_EQ(reports.Summary(true), "trapline: no races\n");
  EXPECT_EQ(reports.ToJson()["races"], json::array());
  reports.Add(program.Race());
  reports.Clear();
  EXPECT_EQ(reports.Summary(false), "");
  EXPECT_TRUE(reports.Add(program.Race()));
}

}  // namespace
}  // namespace trapline
