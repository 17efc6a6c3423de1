// Whose code is whose in statically linked programs, and where calls are recognised.
#include "hypervisor/static_runtime.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/static-runtime/symbols.h"
#include "translator/instruction.h"

namespace trapline {
namespace {

std::unique_ptr<const StaticRuntime> ReadFile(const std::string& path, std::uint64_t bias = 0) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_GE(fd, 0) << path;
  auto runtime = StaticRuntime::Read(fd, bias);
  close(fd);
  return runtime;
}

std::string ProgramPath(const std::string& variant) {
  return std::string(TRAPLINE_STATIC_PROGRAMS) + "/static_program_" + variant;
}

class Owners : public testing::TestWithParam<const char*> {};

TEST_P(Owners, AreToldApart) {
  const std::string path = ProgramPath(GetParam());
  const auto runtime = ReadFile(path);
  ASSERT_TRUE(runtime);
  const auto functions = FunctionsOf(path);
  const auto owner = [&](const std::string& name) {
    const auto found = functions.find(name);
    EXPECT_NE(found, functions.end()) << name;
    return found == functions.end() ? CodeOwner::kProgram : runtime->OwnerOf(found->second);
  };
  for (const char* mine :
       {"main", "__looks_reserved", "_IO_of_mine", "index_of_mine",
        "_ZN12_GLOBAL__N_113LocalFunctionEi", "_ZL5StartPv", "_Z16TemplateFunctionIdET_S0_",
        "_ZN12_GLOBAL__N_17DerivedD0Ev", "_ZNSt6vectorIdSaIdEE17_M_default_appendEm"}) {
    // Without debug info a name of libc's that stands before all others of the program is libc's.
    const bool is_told =
        path.find("debug") != std::string::npos || mine != std::string("_IO_of_mine");
    // The last one only some variants have: an instantiation of the program's own.
    if (is_told && functions.contains(mine)) {
      EXPECT_EQ(owner(mine), CodeOwner::kProgram) << mine;
    }
  }
  for (const char* library : {"_start",
                              "malloc",
                              "free",
                              "_int_malloc",
                              "_int_free",
                              "pthread_mutex_lock",
                              "pthread_mutex_unlock",
                              "__pthread_mutex_unlock_usercnt",
                              "pthread_create",
                              "start_thread",
                              "pthread_join",
                              "__pthread_clockjoin_ex",
                              "vfprintf",
                              "_IO_new_file_xsputn",
                              "__memmove_avx_unaligned_erms",
                              "__memset_avx2_unaligned_erms",
                              "__strlen_avx2",
                              "_dl_relocate_object",
                              "__libc_start_main",
                              "_Unwind_RaiseException",
                              "uw_frame_state_for",
                              "frame_dummy",
                              "sem_wait",
                              "_quicksort",
                              "__clone3",
                              "call_fini",
                              "exit"}) {
    if (functions.contains(library)) {
      EXPECT_EQ(owner(library), CodeOwner::kLibrary) << library;
    }
  }
  for (const char* cxx : {"_Znwm", "_ZdlPv", "__cxa_throw", "__cxa_guard_acquire",
                          "_ZNSt6thread4joinEv", "__gxx_personality_v0"}) {
    if (functions.contains(cxx)) {
      EXPECT_EQ(owner(cxx), CodeOwner::kCxxLibrary) << cxx;
    }
  }
}

TEST_P(Owners, AllOfTheCodeHasOne) {
  const auto runtime = ReadFile(ProgramPath(GetParam()));
  ASSERT_TRUE(runtime);
  std::uint64_t program = 0, library = 0, end = 0;
  for (const StaticRuntime::Range& range : runtime->ranges()) {
    EXPECT_GE(range.begin, end);
    EXPECT_LT(range.begin, range.end);
    end = range.end;
    (range.owner == CodeOwner::kProgram ? program : library) += range.end - range.begin;
  }
  // The program proper is a few functions, the runtime a megabyte.
  EXPECT_GT(program, 500u);
  EXPECT_LT(program, 64u << 10);
  EXPECT_GT(library, 500u << 10);
}

TEST_P(Owners, CallsAreRecognised) {
  const std::string path = ProgramPath(GetParam());
  constexpr std::uint64_t kBias = 0x10000000;
  const auto runtime = ReadFile(path, kBias);
  ASSERT_TRUE(runtime);
  const auto functions = FunctionsOf(path);
  // At the very first instruction, or the first that touches memory close behind.
  for (const char* name :
       {"malloc", "calloc", "realloc", "free", "pthread_mutex_lock", "pthread_rwlock_rdlock",
        "pthread_rwlock_unlock", "sem_wait", "__strlen_avx2", "__memmove_avx_unaligned_erms",
        "__memset_avx2_unaligned_erms", "__memcpy_sse2_unaligned_erms", "strdup", "_Znwm"}) {
    const auto found = functions.find(name);
    if (found == functions.end()) continue;
    bool recognised = false;
    for (std::uint64_t at = found->second; at < found->second + 64 && !recognised; ++at) {
      const RuntimeEntry* const entry = runtime->EntryAt(at + kBias);
      recognised = entry != nullptr;
      if (recognised) {
        EXPECT_EQ(entry->function->call, FindRuntimeFunction(name)->call) << name;
      }
    }
    EXPECT_TRUE(recognised) << name;
  }
  for (const std::string& name : runtime->unrecognised()) {
    // Only in variants for other processors.
    EXPECT_TRUE(name.starts_with("mem") || name.starts_with("__mem") || name.starts_with("str"))
        << name;
  }
  EXPECT_EQ(runtime->EntryAt(functions.at("main") + kBias), nullptr);
}

INSTANTIATE_TEST_SUITE_P(StaticRuntime, Owners,
                         testing::Values("debug_o0", "debug_o2", "plain_o0", "plain_o2",
                                         "debug_pie", "plain_pie"));

TEST(StaticRuntime, NeedsSymbolsAndNoLoader) {
  EXPECT_FALSE(ReadFile(ProgramPath("stripped")));
  EXPECT_FALSE(ReadFile("/proc/self/exe"));  // the test itself is dynamically linked
  EXPECT_FALSE(ReadFile("/etc/passwd"));
  EXPECT_FALSE(ReadFile("/dev/null"));
}

TEST(RuntimeFunctions, AreFoundByAllTheirNames) {
  const auto call = [](std::string_view name) {
    const RuntimeFunction* const function = FindRuntimeFunction(name);
    return function != nullptr ? function->name : "";
  };
  EXPECT_EQ(call("pthread_mutex_lock"), "pthread_mutex_lock");
  EXPECT_EQ(call("__pthread_mutex_lock"), "pthread_mutex_lock");
  EXPECT_EQ(call("__libc_malloc"), "malloc");
  EXPECT_EQ(call("__memcpy_avx_unaligned_erms"), "memcpy");
  EXPECT_EQ(call("__memcpy_chk_avx_unaligned_erms"), "__memcpy_chk");
  EXPECT_EQ(call("__strncasecmp_l_avx2"), "strncasecmp_l");
  EXPECT_EQ(call("__bzero_avx2_unaligned"), "bzero");
  EXPECT_EQ(call("__memcpy_chk"), "__memcpy_chk");
  EXPECT_EQ(call("__wmemset_avx2"), "");
  EXPECT_EQ(call("__pthread_mutex_cond_lock"), "");
  EXPECT_EQ(call("memcpy_of_mine"), "");
  EXPECT_EQ(call("strange_avx"), "");
  EXPECT_EQ(call(""), "");
}

TEST(ChangedRegisters, AreTheInstructions) {
  const auto changed = [](std::vector<std::uint8_t> bytes) {
    const auto instruction = Decode(bytes, 0);
    EXPECT_TRUE(instruction);
    return instruction ? ChangedRegisters(*instruction) : ~0u;
  };
  const auto bit = [](std::uint8_t number) { return 1u << number; };
  EXPECT_EQ(changed({0x48, 0x89, 0xf8}), bit(kRax));        // mov rax, rdi
  EXPECT_EQ(changed({0x48, 0x8b, 0xf8}), bit(kRdi));        // mov rdi, rax
  EXPECT_EQ(changed({0x48, 0x89, 0x38}), 0u);               // mov [rax], rdi
  EXPECT_EQ(changed({0x49, 0x89, 0xf8}), bit(8));           // mov r8, rdi
  EXPECT_EQ(changed({0x48, 0x8d, 0x34, 0x17}), bit(kRsi));  // lea rsi, [rdi+rdx]
  EXPECT_EQ(changed({0x48, 0x39, 0xf7}), 0u);               // cmp rdi, rsi
  EXPECT_EQ(changed({0x48, 0x83, 0xff, 0x01}), 0u);         // cmp rdi, 1
  EXPECT_EQ(changed({0x48, 0x83, 0xec, 0x18}), bit(kRsp));  // sub rsp, 24
  EXPECT_EQ(changed({0x85, 0xff}), 0u);                     // test edi, edi
  EXPECT_EQ(changed({0xbe, 1, 0, 0, 0}), bit(kRsi));        // mov esi, 1
  EXPECT_EQ(changed({0x31, 0xd2}), bit(kRdx));              // xor edx, edx
  EXPECT_EQ(changed({0x55}), bit(kRsp));                    // push rbp
  EXPECT_EQ(changed({0x0f, 0xb6, 0xd2}), bit(kRdx));        // movzx edx, dl
  EXPECT_EQ(changed({0xf3, 0x0f, 0x1e, 0xfa}), 0u);         // endbr64
  EXPECT_EQ(changed({0xc5, 0xf9, 0x6e, 0xc6}), 0u);         // vmovd xmm0, esi
  EXPECT_EQ(changed({0xc5, 0xf9, 0x7e, 0xc6}), bit(kRsi));  // vmovd esi, xmm0
  EXPECT_EQ(changed({0xc5, 0xfd, 0xd7, 0xc1}), bit(kRax));  // vpmovmskb eax, ymm1
  EXPECT_EQ(changed({0xf3, 0xaa}) & bit(kRdi), bit(kRdi));  // rep stosb
}

}  // namespace
}  // namespace trapline
