// Opening a program: the same answers as execve(2) gives, which is asked in a child process.
#include "hypervisor/program_loader.h"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace trapline {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;

// errno of a native execve, 0 when the program starts.
int NativeError(const std::string& path) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    char name[] = "program";
    char* argv[] = {name, nullptr};
    char* envp[] = {nullptr};
    execve(path.c_str(), argv, envp);
    const int error = errno;
    [[maybe_unused]] const ssize_t ignored = write(report[1], &error, sizeof error);
    _exit(0);
  }
  close(report[1]);
  int error = 0;
  if (read(report[0], &error, sizeof error) != sizeof error) error = 0;
  close(report[0]);
  waitpid(child, nullptr, 0);
  return error;
}

class ProgramLoader : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "trapline-loader-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ / name; }
  std::string Write(const std::string& name, const std::string& contents, mode_t mode = 0755) {
    const std::string path = Path(name);
    std::ofstream(path, std::ios::binary) << contents;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string CopyOfTrue(const std::string& name, mode_t mode = 0755) {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    return Write(name, std::string(std::istreambuf_iterator<char>(file), {}), mode);
  }

  // The errno must be execve's, and the message must name the file asked for or the one at fault.
  void ExpectSameError(const std::string& path, int* native_error = nullptr) {
    const int native = NativeError(path);
    if (native_error != nullptr) *native_error = native;
    const auto opened = OpenExecutable(path, {"program"});
    EXPECT_EQ(opened ? 0 : opened.error().error_number, native)
        << path << ": " << (opened ? "opened" : opened.error().message) << "; natively "
        << std::strerror(native);
    if (!opened) {
      EXPECT_NE(opened.error().message.find("cannot run '"), std::string::npos);
      EXPECT_FALSE(opened.error().lost_image);
    }
  }

  fs::path directory_;
};

TEST_F(ProgramLoader, OpensAProgram) {
  const auto opened = OpenExecutable("/proc/self/exe", {"a", "b"});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->path, "/proc/self/exe");
  EXPECT_EQ(opened->image_path, "/proc/self/exe");
  EXPECT_EQ(opened->arguments, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(opened->file.valid());
  EXPECT_FALSE(opened->native_only);
  EXPECT_FALSE(opened->image.segments.empty());
  EXPECT_NE(fcntl(opened->file.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(ProgramLoader, RefusesWhatExecveRefuses) {
  ExpectSameError(Path("missing"));
  ExpectSameError("");
  ExpectSameError("/");
  ExpectSameError(directory_);
  ExpectSameError(Path("missing/program"));
  const std::string text = Write("text", "echo hello\n");
  ExpectSameError(text);
  ExpectSameError(text + "/");
  ExpectSameError(text + "/below");
  ExpectSameError(Write("empty", ""));
  ExpectSameError(Write("not-executable", "#!/bin/sh\n", 0644));
  ExpectSameError(Write("short-elf", std::string(ELFMAG, SELFMAG)));
  ExpectSameError(Write("zeros", std::string(8192, '\0')));
  ExpectSameError(Path(std::string(NAME_MAX + 1, 'n')));
  ExpectSameError("/" + std::string(PATH_MAX, 'p'));
  fs::create_symlink("loop", Path("loop"));
  ExpectSameError(Path("loop"));
  fs::create_symlink("missing", Path("dangling"));
  ExpectSameError(Path("dangling"));
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0755), 0);
  ExpectSameError(Path("fifo"));
  ExpectSameError("/dev/null");
}

TEST_F(ProgramLoader, RefusesAFileOpenForWriting) {
  const std::string path = CopyOfTrue("written");
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  int native = 0;
  ExpectSameError(path, &native);
  EXPECT_EQ(native, ETXTBSY);
  close(fd);
  EXPECT_TRUE(OpenExecutable(path, {"program"}));
}

TEST_F(ProgramLoader, ScriptsAsExecveSeesThem) {
  const std::string directory = directory_.string();
  Write("data", "no program", 0644);
  const std::string lines[] = {"#!\n",
                               "#!  \t \n",
                               "#! /bin/true\n",
                               "#!/bin/true",
                               "#!\t/bin/true\t \n",
                               "#!/missing/interpreter\n",
                               "#!" + directory + "\n",
                               "#!" + directory + "/data\n",
                               "#!" + directory + "/data/below\n",
                               "#!/bin/true " + std::string(400, 'a') + "\n",
                               "#!/" + std::string(300, 'a') + "\n",
                               "#!/bin/true \0 x\n"};
  int number = 0;
  for (const std::string& line : lines) {
    SCOPED_TRACE(line);
    ExpectSameError(Write("script" + std::to_string(number++), line));
  }
}

// The empty name is the working directory, which cannot be executed.
TEST_F(ProgramLoader, EmptyInterpreter) {
  ExpectSameError(Write("two-bytes", "#!"));
  ExpectSameError(Write("nul", std::string("#!\0\n", 4)));
}

TEST_F(ProgramLoader, ChainsOfScripts) {
  std::string interpreter = "/bin/true";
  std::vector<int> errors;
  for (int depth = 1; depth <= 8; ++depth) {
    interpreter = Write("chain" + std::to_string(depth), "#!" + interpreter + "\n");
    SCOPED_TRACE(depth);
    int native = 0;
    ExpectSameError(interpreter, &native);
    errors.push_back(native);
  }
  EXPECT_EQ(errors.front(), 0);
  EXPECT_EQ(errors.back(), ELOOP);
  ExpectSameError(Write("self", "#!" + Path("self") + "\n"));
}

TEST_F(ProgramLoader, ScriptArguments) {
  const std::string inner = Write("inner", "#!/bin/true  -x  y \t\n");
  const std::string outer = Write("outer", "#!" + inner + "\n");
  auto opened = OpenExecutable(inner, {"name", "1", "2"});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->path, inner);
  EXPECT_EQ(opened->image_path, "/bin/true");
  EXPECT_EQ(opened->arguments, (std::vector<std::string>{"/bin/true", "-x  y", inner, "1", "2"}));
  opened = OpenExecutable(outer, {"name", "1"});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->path, outer);
  EXPECT_EQ(opened->arguments, (std::vector<std::string>{"/bin/true", "-x  y", inner, outer, "1"}));
  opened = OpenExecutable(inner, {});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->arguments, (std::vector<std::string>{"/bin/true", "-x  y", inner}));
}

TEST_F(ProgramLoader, ErrorsNameTheFileAtFault) {
  const auto missing = OpenExecutable(Path("gone"), {"gone"});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find(Path("gone")), std::string::npos);
  const std::string script = Write("script", "#!/missing/interpreter\n");
  const auto opened = OpenExecutable(script, {"script"});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find(script), std::string::npos) << opened.error().message;
  EXPECT_NE(opened.error().message.find("/missing/interpreter"), std::string::npos);
}

std::string Elf32Bytes() {
  Elf32_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS32;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = EM_386;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf32_Phdr);
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

TEST_F(ProgramLoader, LeavesThirtyTwoBitProgramsToTheKernel) {
  const std::string program = Write("program32", Elf32Bytes());
  auto opened = OpenExecutable(program, {"p"});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE(opened->native_only);
  EXPECT_EQ(opened->arguments, std::vector<std::string>{"p"});
  // Also as an interpreter.
  opened = OpenExecutable(Write("script32", "#!" + program + "\n"), {"s", "1"});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE(opened->native_only);
  EXPECT_EQ(opened->arguments, (std::vector<std::string>{program, Path("script32"), "1"}));
}

TEST_F(ProgramLoader, LeavesSetUserIdProgramsToTheKernel) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a file of another user's";
  const std::string mine = CopyOfTrue("mine", 04755);
  auto opened = OpenExecutable(mine, {"p"});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_FALSE(opened->native_only) << "its user is this one already";
  const std::string other = CopyOfTrue("other");
  ASSERT_EQ(chown(other.c_str(), kNobody, kNobody), 0);
  for (const mode_t mode : {mode_t{04755}, mode_t{02755}, mode_t{06755}}) {
    ASSERT_EQ(chmod(other.c_str(), mode), 0);
    opened = OpenExecutable(other, {"p"});
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_TRUE(opened->native_only) << std::oct << mode;
  }
}

TEST_F(ProgramLoader, LeavesUnreadableProgramsToTheKernel) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const std::string path = CopyOfTrue("unreadable", 0111);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(9);
    const auto opened = OpenExecutable(path, {"p", "1"});
    if (!opened) _exit(1);
    if (!opened->native_only) _exit(2);
    if (opened->arguments != std::vector<std::string>{"p", "1"}) _exit(3);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Opening leaves no descriptor behind, whatever the outcome.
TEST_F(ProgramLoader, KeepsNoDescriptors) {
  const auto count = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator{});
  };
  const std::string script = Write("script", "#!/bin/true\n");
  const std::string text = Write("text", "text");
  const auto before = count();
  for (const std::string& path : {script, text, Path("missing"), directory_.string()}) {
    const auto opened = OpenExecutable(path, {"p"});
  }
  EXPECT_EQ(count(), before);
}

// --- PATH

class FindProgram : public ProgramLoader {
 protected:
  void SetUp() override {
    ProgramLoader::SetUp();
    if (const char* path = std::getenv("PATH")) old_path_ = path;
    old_directory_ = fs::current_path();
    for (const char* name : {"a", "b", "c"}) fs::create_directory(Path(name));
    Write("b/tool", "#!/bin/true\n");
    Write("c/tool", "#!/bin/true\n");
    Write("a/plain", "text", 0644);
    Write("c/plain", "#!/bin/true\n");
    Write("a/useless", "text", 0644);
    fs::create_directory(Path("a/tool"));
    Write("here", "#!/bin/true\n");
    fs::current_path(directory_);
  }
  void TearDown() override {
    setenv("PATH", old_path_.c_str(), 1);
    fs::current_path(old_directory_);
    ProgramLoader::TearDown();
  }
  static void SetPath(const std::string& path) { setenv("PATH", path.c_str(), 1); }

  std::string old_path_;
  fs::path old_directory_;
};

TEST_F(FindProgram, TakesTheFirstExecutable) {
  SetPath(Path("missing") + ":" + Path("a") + ":" + Path("b") + ":" + Path("c"));
  EXPECT_EQ(FindInPath("tool"), Path("b/tool")) << "a/tool is a directory";
  EXPECT_EQ(FindInPath("plain"), Path("c/plain")) << "a/plain is not executable";
  EXPECT_EQ(FindInPath("nothing"), "");
  EXPECT_EQ(FindInPath(""), "");
}

TEST_F(FindProgram, NamesWithASlashAreTakenAsTheyAre) {
  SetPath(Path("b"));
  EXPECT_EQ(FindInPath("./tool"), "./tool");
  EXPECT_EQ(FindInPath("/missing/tool"), "/missing/tool");
}

// So that opening it tells the user that permission is what is missing.
TEST_F(FindProgram, AFileWithoutPermissionIsBetterThanNone) {
  SetPath(Path("a") + ":" + Path("b"));
  EXPECT_EQ(FindInPath("useless"), Path("a/useless"));
  const auto opened = OpenExecutable(FindInPath("useless"), {"useless"});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().error_number, EACCES);
}

TEST_F(FindProgram, AnEmptyElementIsTheWorkingDirectory) {
  SetPath(":" + Path("a"));
  EXPECT_EQ(FindInPath("here"), "./here");
  SetPath(Path("a") + "::" + Path("b"));
  EXPECT_EQ(FindInPath("here"), "./here");
}

// POSIX, "Environment Variables": a zero-length prefix at the end counts too, and so does an empty
// PATH.
TEST_F(FindProgram, AnEmptyLastElementIsTheWorkingDirectory) {
  SetPath(Path("a") + ":");
  EXPECT_EQ(FindInPath("here"), "./here");
  SetPath("");
  EXPECT_EQ(FindInPath("here"), "./here");
}

}  // namespace
}  // namespace trapline
