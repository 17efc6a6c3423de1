// The file that several processes add their races to.
#include "tools/race_json_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <vector>

#include "hypervisor/signal_held_back.h"

namespace trapline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Part(int process, const std::string& instance, int races) {
  json part = {{"process",
                {{"process", process},
                 {"instance", instance},
                 {"program", "/bin/program"},
                 {"races", races},
                 {"occurrences", 2 * races},
                 {"suppressed", 1}}},
               {"races", json::array()}};
  for (int i = 0; i < races; ++i) {
    part["races"].push_back(
        {{"kind", "write-write"}, {"process", process}, {"instance", instance}, {"number", i}});
  }
  return part;
}

// What Append gets when the race with this number, from 0 on, has been found.
json Newest(int process, const std::string& instance, int number) {
  json part = Part(process, instance, number + 1);
  part["races"] = json::array({part["races"].back()});
  return part;
}

class RaceJsonFileTest : public ::testing::Test {
 protected:
  RaceJsonFileTest()
      : path_(fmt::format("{}/race_json_file_test.{}", ::testing::TempDir(), getpid())) {}
  ~RaceJsonFileTest() override { unlink(path_.c_str()); }

  json Content() const {
    std::ifstream file(path_);
    return json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  }

  std::string path_;
};

TEST_F(RaceJsonFileTest, StartsWithoutRaces) {
  std::ofstream(path_) << std::string(10000, 'x');  // something older, and longer
  RaceJsonFile file;
  ASSERT_TRUE(file.Create(path_, "/bin/program").ok());
  const json content = Content();
  EXPECT_EQ(content["version"], 1);
  EXPECT_EQ(content["program"], "/bin/program");
  EXPECT_EQ(content["summary"]["races"], 0);
  EXPECT_EQ(content["races"], json::array());
}

TEST_F(RaceJsonFileTest, AddsAndReplaces) {
  RaceJsonFile file;
  ASSERT_TRUE(file.Create(path_, "/bin/program").ok());
  ASSERT_TRUE(file.Merge(Part(1, "a", 2)).ok());
  ASSERT_TRUE(file.Merge(Part(1, "b", 1)).ok());  // after an execve
  ASSERT_TRUE(file.Merge(Part(2, "a", 3)).ok());
  ASSERT_TRUE(file.Merge(Part(1, "a", 4)).ok());  // in place of the 2
  const json content = Content();
  EXPECT_EQ(content["races"].size(), 8u);
  EXPECT_EQ(content["summary"]["races"], 8);
  EXPECT_EQ(content["summary"]["occurrences"], 16);
  EXPECT_EQ(content["summary"]["suppressed"], 3);
  EXPECT_EQ(content["summary"]["processes"], 3);
  ASSERT_TRUE(file.Merge(Part(1, "a", 0)).ok());
  EXPECT_EQ(Content()["races"].size(), 4u);  // and the file is shorter again
}

// One after the other or all at once, it is the same file.
TEST_F(RaceJsonFileTest, Appends) {
  RaceJsonFile file;
  ASSERT_TRUE(file.Create(path_, "/bin/program").ok());
  json use = Part(3, "c", 0);
  use["shared_memory"] = {{{"memory", "m"}}};
  for (int number = 0; number < 40; ++number) {
    ASSERT_TRUE(file.Append(Newest(1, "a", number)).ok());
    ASSERT_EQ(Content()["summary"]["races"], 2 * number + 1);
    ASSERT_TRUE(file.Append(Newest(2, std::string(1000, 'b'), number)).ok());
    if (number == 20) {
      ASSERT_TRUE(file.Merge(use).ok());
    }
  }
  const json content = Content();
  EXPECT_EQ(content["races"].size(), 80u);
  EXPECT_EQ(content["summary"]["occurrences"], 160);
  EXPECT_EQ(content["summary"]["processes"], 3);
  EXPECT_EQ(content["shared_memory"].size(), 1u);
  ASSERT_TRUE(file.Merge(Part(1, "a", 40)).ok());
  ASSERT_TRUE(file.Merge(Part(2, std::string(1000, 'b'), 40)).ok());
  json again = Content();
  EXPECT_EQ(again["summary"], content["summary"]);
  EXPECT_EQ(again["races"].size(), 80u);
}

// However much is after the races, and wherever a piece that is read begins.
TEST_F(RaceJsonFileTest, AppendsBeforeAnyLength) {
  for (int length = 3500; length < 4200; ++length) {
    RaceJsonFile file;
    ASSERT_TRUE(file.Create(path_, std::string(length, 'p')).ok());
    ASSERT_TRUE(file.Append(Newest(1, "a", 0)).ok());
    ASSERT_TRUE(file.Append(Newest(1, "a", 1)).ok());
    ASSERT_EQ(Content()["races"].size(), 2u) << length;
  }
}

TEST_F(RaceJsonFileTest, AnyBytesAsNames) {
  RaceJsonFile file;
  ASSERT_TRUE(file.Create(path_, "/bin/\xff\xfe").ok());
  json part = Part(1, "a", 1);
  part["races"][0]["function"] = "f\x80(\"\n],\n";
  ASSERT_TRUE(file.Merge(part).ok());
  EXPECT_EQ(Content()["races"].size(), 1u);
  part["process"]["instance"] = "b";
  ASSERT_TRUE(file.Append(part).ok());
  EXPECT_EQ(Content()["races"].size(), 2u);
}

// Processes that inherited the descriptor, with threads, all at once; none of their races is lost.
TEST_F(RaceJsonFileTest, ManyProcessesAtOnce) {
  constexpr int kProcesses = 12, kRounds = 10, kThreads = 2;
  RaceJsonFile file;
  ASSERT_TRUE(file.Create(path_, "/bin/program").ok());
  std::vector<pid_t> children;
  for (int child = 0; child < kProcesses; ++child) {
    const pid_t pid = fork();
    if (pid != 0) {
      children.push_back(pid);
      continue;
    }
    bool good = true;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int round = 0; round < kRounds; ++round)
          good = (round % 3 == 0 ? file.Merge(Part(child, fmt::format("{}", thread), round + 1))
                                 : file.Append(Newest(child, fmt::format("{}", thread), round)))
                     .ok() &&
                 good;
      });
    }
    for (std::thread& thread : threads) thread.join();
    _exit(good ? 0 : 1);
  }
  for (const pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const json content = Content();
  std::set<std::tuple<int, std::string, int>> found;
  for (const json& race : content["races"])
    found.emplace(race["process"], race["instance"], race["number"]);
  EXPECT_EQ(found.size(), static_cast<std::size_t>(kProcesses * kThreads * kRounds));
  EXPECT_EQ(content["races"].size(), found.size());
  EXPECT_EQ(content["summary"]["processes"], kProcesses * kThreads);
}

TEST_F(RaceJsonFileTest, AfterExecve) {
  RaceJsonFile file;
  ASSERT_TRUE(file.Create(path_, "/bin/program").ok());
  RaceJsonFile after;
  after.Adopt(dup(file.descriptor()), path_);
  ASSERT_TRUE(after.Merge(Part(1, "b", 2)).ok());
  EXPECT_EQ(Content()["races"].size(), 2u);
}

// By the descriptor alone: another root directory or user, or a removed name, do not matter.
TEST_F(RaceJsonFileTest, WithoutItsName) {
  RaceJsonFile file;
  ASSERT_TRUE(file.Create(path_, "/bin/program").ok());
  const std::string moved = path_ + ".moved";
  ASSERT_EQ(rename(path_.c_str(), moved.c_str()), 0);
  EXPECT_TRUE(file.Merge(Part(1, "a", 1)).ok());
  ASSERT_EQ(rename(moved.c_str(), path_.c_str()), 0);
  EXPECT_EQ(Content()["races"].size(), 1u);
}

TEST_F(RaceJsonFileTest, WhyAWriteFailsIsKept) {
  errno = ENOSPC;
  { const SignalHeldBack signal(SIGXFSZ); }
  EXPECT_EQ(errno, ENOSPC);
}

TEST_F(RaceJsonFileTest, ErrorsOfCreation) {
  RaceJsonFile file;
  EXPECT_THAT(file.Create("/nonexistent/races.json", "p").message(),
              HasSubstr("cannot write the races to '/nonexistent/races.json': No such file"));
  EXPECT_THAT(file.Create("/", "p").message(), HasSubstr("Is a directory"));
  EXPECT_THAT(file.Create("/dev/null", "p").message(), HasSubstr("not a regular file"));
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(file.Create(path_, "p").message(), HasSubstr("not a regular file"));
  EXPECT_EQ(file.descriptor(), -1);
}

TEST_F(RaceJsonFileTest, SomethingElseInTheFile) {
  RaceJsonFile file;
  ASSERT_TRUE(file.Create(path_, "p").ok());
  for (const char* text : {"", "{", "[]", "{\"version\":2}", "{\"version\":1,\"races\":3}",
                           "\n],\n", "{\"races\":[\n],\n", "{\"races\":[\n],\n\"version\":1}",
                           "{\"races\":[\n],\n\"version\":1,\"processes\":[],\"summary\":1}}"}) {
    std::ofstream(path_) << text;
    const std::string why = "cannot add the races of process 7 to '" + path_ + "': it is not";
    EXPECT_THAT(file.Merge(Part(7, "a", 1)).message(), HasSubstr(why));
    EXPECT_THAT(file.Append(Newest(7, "a", 0)).message(), HasSubstr(why));
    std::ifstream content(path_);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(content), {}), text);
  }
}

// A full disk, or as here a limit: what was there stays readable.
TEST_F(RaceJsonFileTest, NoRoom) {
  RaceJsonFile file;
  ASSERT_TRUE(file.Create(path_, "p").ok());
  ASSERT_TRUE(file.Merge(Part(1, "a", 1)).ok());
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit = {8192, 8192};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto fails = [](const Status& status) {
      return status.message().find("File too large") != std::string::npos;
    };
    json newest = Newest(2, "a", 0);
    newest["races"][0]["function"] = std::string(10'000, 'f');
    _exit(fails(file.Merge(Part(2, "a", 1000))) && fails(file.Append(newest)) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Content()["races"].size(), 1u);
}

}  // namespace
}  // namespace trapline
