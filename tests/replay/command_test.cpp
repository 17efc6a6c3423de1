// `trapline log` and `trapline replay` as commands: output, messages, exit status.
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/wait.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "detector/detector.h"
#include "tests/replay/log_test_support.h"

namespace trapline {
namespace {

struct Outcome {
  int status = -1;
  std::string text;  // standard output and error
};

Outcome Command(const std::string& arguments) {
  Outcome outcome;
  FILE* pipe = popen((std::string(TRAPLINE_LOG) + " " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  while (const std::size_t got = fread(buffer, 1, sizeof(buffer), pipe)) {
    outcome.text.append(buffer, got);
  }
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

class CommandTest : public testing::Test {
 protected:
  // Two threads write V1, one of them also under a lock: one race.
  void SetUp() override {
    WriteFile(scratch_ / "trace.std",
              "T0|fork(T1)|1\nT0|acq(L)|2\nT0|w(V1)|3\nT0|rel(L)|4\nT1|w(V1)|5\n"
              "T1|r(V2)|6\nT0|r(V2)|7\nT0|join(T1)|8\n");
    log_ = scratch_ / "a.log";
    const Outcome outcome = Command("log import " + (scratch_ / "trace.std") + " -o " + log_);
    ASSERT_EQ(outcome.status, 0) << outcome.text;
  }

  ScratchDirectory scratch_;
  std::string log_;
};

TEST_F(CommandTest, InfoDumpCheck) {
  Outcome outcome = Command("log info " + log_);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.text.find("events      8,"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("missing     nothing"), std::string::npos) << outcome.text;
  outcome = Command("log dump " + log_ + " --sequence 5,5");
  EXPECT_EQ(outcome.text.find("5 T1 write 0x"), 0U) << outcome.text;
  EXPECT_NE(outcome.text.find(" ip 0x5\n"), std::string::npos) << outcome.text;
  outcome = Command("log check " + log_);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.text.find("8 events of 2 threads"), std::string::npos) << outcome.text;
}

TEST_F(CommandTest, ReplayFindsTheRace) {
  const Outcome outcome = Command("replay " + log_ + " --detector fasttrack,eraser");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.text.find("fasttrack: 1 pair of places races"), std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("write-write race"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("by thread 1 (event 4), at 0x5"), std::string::npos) << outcome.text;
}

TEST_F(CommandTest, ComparisonAndJson) {
  const std::string json = scratch_ / "report.json";
  const Outcome outcome =
      Command("replay " + log_ + " -d empty --compare --truth fasttrack --json " + json);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("truth: fasttrack"), std::string::npos) << outcome.text;
  const auto report = nlohmann::json::parse(ReadFile(json));
  EXPECT_EQ(report["detectors"][0]["name"], "fasttrack");
  EXPECT_EQ(report["detectors"][0]["comparison"]["agreed"], 1);
  EXPECT_EQ(report["detectors"][1]["comparison"]["missed"], 1);
  EXPECT_EQ(report["detectors"][0]["races"][0]["later"]["place"]["address"], 5);
}

TEST_F(CommandTest, CutMergeAndExportGiveTheTraceBack) {
  ASSERT_EQ(Command("log cut " + log_ + " --sequence 1,4 -o " + (scratch_ / "b")).status, 0);
  ASSERT_EQ(Command("log cut " + log_ + " --sequence 5,99999999 -o " + (scratch_ / "c")).status, 0);
  Outcome outcome = Command("log info " + (scratch_ / "c"));
  EXPECT_NE(outcome.text.find("holds       sequence 5 to the end"), std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("not here    sequence 0 to 4"), std::string::npos) << outcome.text;
  outcome =
      Command("log merge " + (scratch_ / "b") + " " + (scratch_ / "c") + " -o " + (scratch_ / "d"));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  ASSERT_EQ(Command("log export " + log_ + " -o " + (scratch_ / "1.std")).status, 0);
  ASSERT_EQ(Command("log export " + (scratch_ / "d") + " -o " + (scratch_ / "2.std")).status, 0);
  outcome = Command("replay " + (scratch_ / "d"));  // the pieces were all there is
  EXPECT_EQ(outcome.text, Command("replay " + log_).text);
  const std::string trace = ReadFile(scratch_ / "1.std");
  EXPECT_NE(trace.find("T1|w("), std::string::npos) << trace;
  EXPECT_EQ(ReadFile(scratch_ / "2.std"), trace);
}

TEST_F(CommandTest, AllDetectorsBesideFastTrack) {
  const Outcome outcome = Command("replay " + log_ + " -d all --compare");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("truth: fasttrack"), std::string::npos) << outcome.text;
  for (const DetectorInfo& info : Detectors())
    EXPECT_NE(outcome.text.find("\n" + std::string(info.name)), std::string::npos) << info.name;
}

TEST_F(CommandTest, MistakesAreTold) {
  Outcome outcome = Command("replay /nowhere.log");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("cannot open /nowhere.log"), std::string::npos) << outcome.text;
  outcome = Command("log cut " + log_ + " --time 0,1 -o " + (scratch_ / "b"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("without a clock"), std::string::npos) << outcome.text;
  outcome = Command("log drain no-such-segment " + (scratch_ / "b"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("no-such-segment"), std::string::npos) << outcome.text;
  outcome = Command("replay " + log_ + " --json /nowhere/report");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("cannot write /nowhere/report"), std::string::npos) << outcome.text;
  WriteFile(scratch_ / "bad.std", "T0|w(V)|1\nT0|x(V)|2\n");
  outcome = Command("log import " + (scratch_ / "bad.std") + " -o " + (scratch_ / "b"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("line 2"), std::string::npos) << outcome.text;
  // Nothing is left of what is no trace at all, and what was there before is not destroyed.
  WriteFile(scratch_ / "bad.std", "no trace\n");
  EXPECT_EQ(Command("log import " + (scratch_ / "bad.std") + " -o " + (scratch_ / "e")).status, 1);
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "e"));
  const std::string before = ReadFile(log_);
  EXPECT_EQ(Command("log import " + (scratch_ / "bad.std") + " -o " + log_).status, 1);
  EXPECT_EQ(ReadFile(log_), before);
}

TEST_F(CommandTest, WrongCommandLinesHaveTheMonitorsStatus) {
  for (const std::string& command :
       {std::string("log"), std::string("log info"), "log cut " + log_,
        "log dump --nonsense " + log_, std::string("replay"), "replay --nonsense " + log_,
        "replay --shards 0 " + log_, "replay --sampling-rate nan " + log_,
        "replay --truth fasttrack " + log_, "replay --filter nonsense " + log_,
        "replay --compare --truth nonsense " + log_, "replay --seed=-1 " + log_,
        std::string("log frob"), std::string("frob")}) {
    EXPECT_EQ(Command(command).status, 125) << command;
  }
  const Outcome outcome = Command("replay " + log_ + " -d fasttrack,nonsense");
  EXPECT_EQ(outcome.status, 125);
  EXPECT_NE(outcome.text.find("no detector 'nonsense'"), std::string::npos) << outcome.text;
  EXPECT_NE(Command("frob").text.find("there is no command 'frob'"), std::string::npos);
  EXPECT_NE(Command("log frob").text.find("trapline log: there is no command 'frob'"),
            std::string::npos);
  EXPECT_EQ(Command("log cut --help").status, 0);
  for (const char* command : {"info", "dump", "check", "cut", "merge", "import", "export"}) {
    const std::string help = Command(std::string("log ") + command + " --help").text;
    EXPECT_EQ(help.find("REQUIRED   \n"), std::string::npos) << help;  // all is described
  }
}

TEST_F(CommandTest, NothingToCutIsTold) {
  for (const char* range : {"--sequence 9,20", "--sequence 5,4", "--threads 2", "--threads 0,7"}) {
    const Outcome outcome = Command("log cut " + log_ + " " + range + " -o " + (scratch_ / "b"));
    EXPECT_EQ(outcome.status, 1) << range;
    EXPECT_FALSE(std::filesystem::exists(scratch_ / "b")) << range;
  }
  EXPECT_EQ(Command("log dump " + log_ + " --threads 2").status, 1);
  const Outcome outcome = Command("log dump " + log_ + " --sequence 5,4");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("--sequence 5 4 ends before it begins"), std::string::npos)
      << outcome.text;
}

TEST_F(CommandTest, WhatIsReadIsNeverWrittenTo) {
  const std::string before = ReadFile(log_);
  std::filesystem::create_symlink(log_, scratch_ / "link");
  ASSERT_EQ(Command("log cut " + log_ + " --sequence 1,4 -o " + (scratch_ / "b")).status, 0);
  for (const std::string& command :
       {"log cut " + log_ + " -o " + (scratch_ / "link"),
        "log merge " + (scratch_ / "b") + " " + (scratch_ / "link") + " -o " + log_,
        "log import " + (scratch_ / "link") + " -o " + log_,
        "log export " + log_ + " -o " + (scratch_ / "link"),
        "log export " + log_ + " -o " + (scratch_ / "c") + " --number-locations " + log_,
        "replay " + log_ + " --json " + (scratch_ / "link")}) {
    EXPECT_EQ(Command(command).status, 1) << command;
    EXPECT_EQ(ReadFile(log_), before) << command;
  }
}

TEST_F(CommandTest, LostOutputIsAFailure) {
  const std::string said = scratch_ / "said";
  for (const char* command : {"log dump ", "log info ", "log check ", "replay "}) {
    EXPECT_EQ(Command(command + log_ + " >/dev/full 2>" + said + "; exit $?").status, 1) << command;
    EXPECT_NE(ReadFile(said).find("standard output"), std::string::npos) << ReadFile(said);
  }
}

TEST_F(CommandTest, DamagedAndUnfinishedLogs) {
  std::string bytes = ReadFile(log_);
  WriteFile(scratch_ / "cut", bytes.substr(0, bytes.size() - 3));
  Outcome outcome = Command("replay " + (scratch_ / "cut"));
  EXPECT_EQ(outcome.status, 0);  // all but the last block is there
  EXPECT_NE(outcome.text.find("not complete"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("before the first missing event is replayed"), std::string::npos)
      << outcome.text;
  EXPECT_EQ(Command("log check " + (scratch_ / "cut")).status, 1);
  // Its end cannot be read, and what is there is not known to be all until then.
  WriteFile(scratch_ / "short", bytes.substr(0, bytes.size() / 2));
  outcome = Command("replay " + (scratch_ / "short"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("can be replayed"), std::string::npos) << outcome.text;
  bytes[bytes.size() / 2] ^= 1;
  WriteFile(scratch_ / "bad", bytes);
  outcome = Command("replay " + (scratch_ / "bad"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("checksum"), std::string::npos) << outcome.text;
  EXPECT_EQ(Command("replay --partial " + (scratch_ / "bad")).status, 0);
}

}  // namespace
}  // namespace trapline
