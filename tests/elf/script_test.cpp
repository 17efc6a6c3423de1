#include "hypervisor/elf/script.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace trapline {
namespace {

std::string Parse(std::string_view start) {
  const auto line = ParseScriptLine(start);
  if (!line) return "refused";
  return "[" + line->interpreter + "]" + (line->argument ? "[" + *line->argument + "]" : "");
}

TEST(ScriptLine, Ordinary) {
  EXPECT_EQ(Parse("#!/bin/sh\necho hello\n"), "[/bin/sh]");
  EXPECT_EQ(Parse("#! /bin/sh\n"), "[/bin/sh]");
  EXPECT_EQ(Parse("#!\t /usr/bin/env python3 -u \t \nprint()\n"), "[/usr/bin/env][python3 -u]");
  EXPECT_EQ(Parse("#!relative/path -x\n"), "[relative/path][-x]");
  EXPECT_EQ(Parse("#!/bin/sh\r\n"), "[/bin/sh\r]");
}

TEST(ScriptLine, Refused) {
  EXPECT_EQ(Parse(""), "refused");
  EXPECT_EQ(Parse("#"), "refused");
  EXPECT_EQ(Parse("# !/bin/sh\n"), "refused");
  EXPECT_EQ(Parse("\n#!/bin/sh\n"), "refused");
  EXPECT_EQ(Parse("#!\n"), "refused");
  EXPECT_EQ(Parse("#!  \t \n"), "refused");
  EXPECT_EQ(Parse("#!\n/bin/sh\n"), "refused");
  EXPECT_EQ(Parse("#!" + std::string(254, ' ') + "/bin/sh\n"), "refused");
}

TEST(ScriptLine, WithoutNewline) {
  EXPECT_EQ(Parse("#!/bin/sh"), "[/bin/sh]");
  EXPECT_EQ(Parse("#!/bin/sh -x"), "[/bin/sh][-x]");
  EXPECT_EQ(Parse("#!/bin/sh "), "[/bin/sh][]");
  EXPECT_EQ(Parse("#!"), "[]");
  EXPECT_EQ(Parse(std::string_view("#!/bin/sh\0\n", 11)), "[/bin/sh]");
}

TEST(ScriptLine, Length) {
  const std::string name(200, 'n');
  // The newline is the 256th byte, or just beyond.
  EXPECT_EQ(Parse("#!" + std::string(253, 'n') + "\n"), "[" + std::string(253, 'n') + "]");
  EXPECT_EQ(Parse("#!" + std::string(254, 'n') + "\n"), "refused");
  // An argument is cut off at 255 bytes, the name never.
  EXPECT_EQ(Parse("#!" + name + " " + std::string(100, 'a') + "\n"),
            "[" + name + "][" + std::string(52, 'a') + "]");
}

struct Native {
  std::string arguments;
  int error_number;
};

Native RunNatively(const std::string& path) {
  std::array<int, 2> output;
  if (pipe2(output.data(), O_CLOEXEC) != 0) std::abort();
  const pid_t child = fork();
  if (child < 0) std::abort();
  if (child == 0) {
    dup2(output[1], 1);
    std::array<char*, 2> arguments = {const_cast<char*>("zero"), nullptr};
    std::array<char*, 1> environment = {nullptr};
    execve(path.c_str(), arguments.data(), environment.data());
    const std::string failure = "errno " + std::to_string(errno);
    _exit(write(1, failure.data(), failure.size()) > 0 ? 0 : 1);
  }
  close(output[1]);
  Native result = {};
  std::array<char, 4096> buffer;
  ssize_t got;
  while ((got = read(output[0], buffer.data(), buffer.size())) > 0) {
    result.arguments.append(buffer.data(), static_cast<size_t>(got));
  }
  close(output[0]);
  int status;
  if (waitpid(child, &status, 0) != child) std::abort();
  if (result.arguments.starts_with("errno ")) result.error_number = std::atoi(&result.arguments[6]);
  return result;
}

TEST(ScriptLine, AgreesWithTheKernel) {
  std::array<char, 32> directory = {"/tmp/trapline-script-XXXXXX"};
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string script = std::string(directory.data()) + "/script";
  const std::string echo = ELF_ARGUMENTS;
  const std::vector<std::string> lines = {
      "#!" + echo + "\n",
      "#!" + echo,
      "#!" + echo + " ",
      "#! \t" + echo + "  one two\tthree \t\n",
      "#!" + echo + " cut off here",
      "#!" + echo + std::string("\0 after\n", 8),
      "#!" + echo + " a" + std::string("\0 after\n", 8),
      "#!" + echo + " " + std::string(300, 'x') + "\n",
      "#!" + echo + " " + std::string(300, 'x'),
      "#!" + echo + std::string(300, ' ') + "x\n",
      "#!" + std::string(kScriptHeaderBytes - 3 - echo.size(), ' ') + echo + "\n",
      "#!" + std::string(kScriptHeaderBytes - 2 - echo.size(), ' ') + echo + "\n",
      "#!" + std::string(kScriptHeaderBytes - 2 - echo.size(), ' ') + echo,
      "#!" + std::string(kScriptHeaderBytes - 3 - echo.size(), ' ') + echo,
      "#!" + std::string(kScriptHeaderBytes - 3 - echo.size(), ' ') + echo + " x",
      "#!" + std::string(kScriptHeaderBytes - 4 - echo.size(), ' ') + echo + " x",
      "#!",
      "#! ",
      "#!\n",
      "#!   \n",
      "#!" + std::string(300, ' '),
      "#!/nonexistent/interpreter\n",
      "#" + echo + "\n",
      "",
  };
  for (const std::string& line : lines) {
    {
      std::ofstream file(script, std::ios::binary);
      file << line;
    }
    ASSERT_EQ(chmod(script.c_str(), 0755), 0);
    const Native native = RunNatively(script);
    const auto parsed = ParseScriptLine(line);
    if (!parsed) {
      EXPECT_EQ(native.error_number, ENOEXEC) << line << ": " << native.arguments;
    } else if (parsed->interpreter != echo) {
      EXPECT_EQ(native.error_number, parsed->interpreter.empty() ? EACCES : ENOENT)
          << line << ": " << native.arguments;
    } else {
      std::string expected = "[" + echo + "]";
      if (parsed->argument) expected += "[" + *parsed->argument + "]";
      expected += "[" + script + "]";
      EXPECT_EQ(native.arguments, expected) << line;
    }
  }
  unlink(script.c_str());
  rmdir(directory.data());
}

}  // namespace
}  // namespace trapline
