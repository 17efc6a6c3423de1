// The test looks at itself: its own stack, locals and thread-local variables. Built as a dynamic
// program and as a static one at any address, which the monitor is.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>
#include <vector>
#ifndef STATIC_PROGRAM
#include <dlfcn.h>
#endif

#include "symbols/modules.h"
#include "symbols/symbolizer.h"
#include "symbols/unwinder.h"

namespace trapline {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

UnwindRegisters FromContext(const ucontext_t& context) {
  const auto& from = context.uc_mcontext.gregs;
  const auto get = [&](int which) { return static_cast<std::uint64_t>(from[which]); };
  UnwindRegisters registers;
  registers.rbx = get(REG_RBX);
  registers.rbp = get(REG_RBP);
  registers.rsp = get(REG_RSP);
  registers.r12 = get(REG_R12);
  registers.r13 = get(REG_R13);
  registers.r14 = get(REG_R14);
  registers.r15 = get(REG_R15);
  registers.rip = get(REG_RIP);
  return registers;
}

struct Stack {
  std::vector<std::uint64_t> pcs;
  std::vector<StackFrame> frames;
};

class SelfTest : public ::testing::Test {
 public:
  // The stack of the caller; a macro, because it must still be live.
#define TAKE_STACK(stack, limit)                                                          \
  do {                                                                                    \
    ucontext_t context;                                                                   \
    ASSERT_EQ(getcontext(&context), 0);                                                   \
    (stack).pcs.resize(limit);                                                            \
    (stack).pcs.resize(unwinder_.Unwind(FromContext(context), OwnMemory(), (stack).pcs)); \
    (stack).frames.resize(limit);                                                         \
    (stack).frames.resize(                                                                \
        unwinder_.UnwindFrames(FromContext(context), OwnMemory(), (stack).frames));       \
  } while (false)

  std::vector<std::string> Functions(const Stack& stack) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < stack.pcs.size(); ++i) {
      for (const SourceFrame& frame :
           symbolizer_.ResolveCode(stack.pcs[i] - (i != 0 ? 1 : 0)).frames)
        names.push_back(frame.function);
    }
    return names;
  }

  [[gnu::noinline]] void Descend(int depth, std::size_t limit, Stack& stack) {
    if (depth == 0) {
      TAKE_STACK(stack, limit);
    } else {
      Descend(depth - 1, limit, stack);
    }
    asm volatile("");  // no tail call
  }

  Modules modules_;
  Unwinder unwinder_{modules_};
  Symbolizer symbolizer_{modules_};
};

TEST_F(SelfTest, Recursion) {
  Stack stack;
  Descend(100, 1000, stack);
  const auto names = Functions(stack);
  int descents = 0;
  for (const std::string& name : names)
    descents += name.find("SelfTest::Descend") != std::string::npos ? 1 : 0;
  EXPECT_EQ(descents, 101);
  EXPECT_THAT(names, ::testing::Contains("main"));
  // As pcs and as frames the same.
  ASSERT_EQ(stack.frames.size(), stack.pcs.size());
  for (std::size_t i = 0; i < stack.pcs.size(); ++i) {
    EXPECT_EQ(stack.frames[i].pc, stack.pcs[i]);
    EXPECT_EQ(stack.frames[i].is_return_address, i != 0);
    if (i != 0 && stack.frames[i].cfa != 0) {
      EXPECT_GT(stack.frames[i].cfa, stack.frames[i - 1].cfa);
    }
  }
}

TEST_F(SelfTest, Limit) {
  Stack stack;
  Descend(100, 7, stack);
  EXPECT_EQ(stack.pcs.size(), 7u);
  Descend(100, 0, stack);
  EXPECT_EQ(stack.pcs.size(), 0u);
}

TEST_F(SelfTest, NewThread) {
  Stack stack;
  std::thread([&] { Descend(2, 1000, stack); }).join();
  EXPECT_GE(stack.pcs.size(), 5u);
  const auto names = Functions(stack);
  // It ends where the thread began, not in garbage.
  EXPECT_THAT(names, ::testing::Not(::testing::Contains("main")));
  EXPECT_NE(names.back(), "");
}

TEST_F(SelfTest, MemoryThatCannotBeRead) {
  ucontext_t context;
  ASSERT_EQ(getcontext(&context), 0);
  std::uint64_t pcs[10];
  const MemoryReader nothing = {[](void*, std::uint64_t, void*, std::size_t) { return false; },
                                nullptr};
  EXPECT_EQ(unwinder_.Unwind(FromContext(context), nothing, pcs), 1u);
  EXPECT_EQ(pcs[0], FromContext(context).rip);
}

TEST_F(SelfTest, AnyRegisters) {
  std::mt19937_64 random(1);
  ucontext_t context;
  ASSERT_EQ(getcontext(&context), 0);
  const UnwindRegisters good = FromContext(context);
  const std::uint64_t interesting[] = {0,        1,        8,        ~0ull,      ~7ull,
                                       good.rsp, good.rbp, good.rip, 1ull << 47, (1ull << 47) - 8};
  std::uint64_t pcs[200];
  for (int round = 0; round < 3000; ++round) {
    UnwindRegisters registers = good;
    for (std::uint64_t* value : {&registers.rip, &registers.rsp, &registers.rbp, &registers.rbx}) {
      switch (random() % 4) {
        case 0:
          *value = interesting[random() % std::size(interesting)];
          break;
        case 1:
          *value += random() % 4096 - 2048;
          break;
        case 2:
          *value = random();
          break;
        default:
          break;
      }
    }
    const std::size_t depth = unwinder_.Unwind(registers, OwnMemory(), pcs);
    EXPECT_GE(depth, 1u);
    EXPECT_EQ(pcs[0], registers.rip);
  }
}

// rbp chains that lead in a circle.
TEST_F(SelfTest, Circles) {
  auto* code = static_cast<unsigned char*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(code, MAP_FAILED);
  std::memset(code, 0x90, 4096);
  code[10] = 0xe8;  // call: what follows is a return address
  const auto base = reinterpret_cast<std::uint64_t>(code);
  std::uint64_t stack[4] = {};
  stack[0] = reinterpret_cast<std::uint64_t>(stack);  // rbp -> itself
  stack[1] = base + 15;
  UnwindRegisters registers;
  registers.rip = base + 15;
  registers.rsp = registers.rbp = reinterpret_cast<std::uint64_t>(stack);
  std::uint64_t pcs[100];
  EXPECT_LE(unwinder_.Unwind(registers, OwnMemory(), pcs), 3u);
  munmap(code, 4096);
}

// Code made at run time, described by nothing: with a frame pointer one gets through it.
TEST_F(SelfTest, GeneratedCode) {
  constexpr unsigned char kCode[] = {
      0x55,              // push %rbp
      0x48, 0x89, 0xe5,  // mov %rsp, %rbp
      0x48, 0x89, 0xf8,  // mov %rdi, %rax
      0x48, 0x89, 0xf7,  // mov %rsi, %rdi
      0xff, 0xd0,        // call *%rax
      0x5d,              // pop %rbp
      0xc3,              // ret
  };
  void* code =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  std::memcpy(code, kCode, sizeof kCode);
  struct Argument {
    SelfTest* test;
    Stack stack;
  } argument{this, {}};
  const auto function = reinterpret_cast<void (*)(void (*)(void*), void*)>(code);
  function(
      [](void* pointer) {
        auto* own = static_cast<Argument*>(pointer);
        own->test->Descend(1, 100, own->stack);
      },
      &argument);
  const auto names = Functions(argument.stack);
  EXPECT_THAT(names, ::testing::Contains("main"));
  bool found = false;
  for (const std::uint64_t pc : argument.stack.pcs)
    found = found || pc == reinterpret_cast<std::uint64_t>(code) + 12;
  EXPECT_TRUE(found);
  // At its first instructions, before there is a frame, and at its last.
  for (const std::uint64_t offset : {0, 1, 13}) {
    std::uint64_t stack[3] = {};
    UnwindRegisters registers;
    registers.rip = reinterpret_cast<std::uint64_t>(code) + offset;
    registers.rsp = reinterpret_cast<std::uint64_t>(stack);
    stack[offset == 1 ? 1 : 0] = argument.stack.pcs[2];  // a real return address
    std::uint64_t pcs[2];
    EXPECT_EQ(unwinder_.Unwind(registers, OwnMemory(), pcs), 2u) << offset;
    EXPECT_EQ(pcs[1], argument.stack.pcs[2]);
  }
  munmap(code, 4096);
}

TEST_F(SelfTest, Vdso) {
  const Module* vdso = modules_.Find(getauxval(AT_SYSINFO_EHDR));
  ASSERT_NE(vdso, nullptr);
  bool found = false;
  for (std::uint64_t pc = vdso->begin; pc < vdso->end && !found; pc += 8)
    found =
        symbolizer_.ResolveCode(pc).frames[0].function.find("clock_gettime") != std::string::npos;
  EXPECT_TRUE(found);
}

TEST_F(SelfTest, ManyThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        Stack stack;
        Descend(round % 20, 100, stack);
        EXPECT_GE(stack.pcs.size(), static_cast<std::size_t>(round % 20 + 3));
        if (i == 3) unwinder_.OnUnmap(stack.pcs[1] & ~4095ull, (stack.pcs[1] & ~4095ull) + 4096);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

struct Inner {
  int first;
  long second[3];
};
struct Outer {
  char letter;
  Inner inner;
};

volatile std::uint64_t escaped;

class LocalsTest : public SelfTest {
 protected:
  // The address is in this frame, which must be found from frames further in.
  [[gnu::noinline]] void Look(std::uint64_t address, std::optional<StackVariable>& variable) {
    Stack stack;
    TAKE_STACK(stack, 100);
    variable = symbolizer_.ResolveStack(address, stack.frames);
    escaped = address;
  }

  [[gnu::noinline]] void OnStack(int parameter) {
    volatile int array[10] = {parameter};
    Outer object = {'x', {1, {2, 3, 4}}};
    escaped = reinterpret_cast<std::uint64_t>(&object);
    std::optional<StackVariable> variable;
    Look(reinterpret_cast<std::uint64_t>(&array[3]) + 1, variable);
    ASSERT_TRUE(variable);
    EXPECT_EQ(variable->name, "array");
    EXPECT_EQ(variable->expression, "array[3]");
    EXPECT_EQ(variable->type, "volatile int[10]");
    EXPECT_EQ(variable->offset, 13u);
    EXPECT_THAT(variable->function, HasSubstr("LocalsTest::OnStack"));
    EXPECT_THAT(variable->file, EndsWith("/self_test.cpp"));
    EXPECT_GT(variable->line, 0);
    EXPECT_GE(variable->frame, 1u);

    Look(reinterpret_cast<std::uint64_t>(&object.inner.second[2]), variable);
    ASSERT_TRUE(variable);
    EXPECT_EQ(variable->expression, "object.inner.second[2]");
    EXPECT_EQ(variable->type, "Outer");
    {
      volatile long in_block[4] = {1};
      Look(reinterpret_cast<std::uint64_t>(&in_block[1]), variable);
      ASSERT_TRUE(variable);
      EXPECT_EQ(variable->expression, "in_block[1]");
      in_block[2] = 3;
    }
    array[1] = static_cast<int>(object.inner.second[1]);
  }
};

TEST_F(LocalsTest, Variables) { OnStack(3); }

TEST_F(LocalsTest, NoVariable) {
  std::optional<StackVariable> variable;
  static int global;
  Look(reinterpret_cast<std::uint64_t>(&global), variable);
  EXPECT_FALSE(variable);
  EXPECT_FALSE(symbolizer_.ResolveStack(0x1000, {}));
}

struct PerThread {
  int values[4];
};
thread_local PerThread per_thread = {{1, 2, 3, 4}};
thread_local int per_thread_zero;

TEST_F(SelfTest, ThreadLocals) {
  const auto look = [&] {
    const auto pointer = reinterpret_cast<std::uint64_t>(__builtin_thread_pointer());
    modules_.Find(reinterpret_cast<std::uint64_t>(&escaped));
    const auto place = symbolizer_.ResolveThreadLocal(
        reinterpret_cast<std::uint64_t>(&per_thread.values[2]), pointer, OwnMemory());
    ASSERT_TRUE(place);
    EXPECT_THAT(place->symbol, EndsWith("per_thread"));
    EXPECT_EQ(place->expression, "per_thread.values[2]");
    EXPECT_EQ(place->offset, 8u);
    const auto zero = symbolizer_.ResolveThreadLocal(
        reinterpret_cast<std::uint64_t>(&per_thread_zero), pointer, OwnMemory());
    ASSERT_TRUE(zero);
    EXPECT_THAT(zero->symbol, EndsWith("per_thread_zero"));
    // The C library's.
    const auto error = symbolizer_.ResolveThreadLocal(reinterpret_cast<std::uint64_t>(&errno),
                                                      pointer, OwnMemory());
    ASSERT_TRUE(error);
    EXPECT_THAT(error->symbol, HasSubstr("errno"));
    EXPECT_FALSE(symbolizer_.ResolveThreadLocal(reinterpret_cast<std::uint64_t>(&escaped), pointer,
                                                OwnMemory()));
  };
  per_thread_zero = per_thread.values[0];
  look();
  std::thread(look).join();
}

int OwnFunction() { return 1; }
int (*own_pointer)() = OwnFunction;
int (** volatile shown)() = &own_pointer;  // that there is one at all

TEST_F(SelfTest, StoredAddresses) {
  const auto slot = reinterpret_cast<std::uint64_t>(shown);
  const StoredAddress own = symbolizer_.ImportAt(slot);
  EXPECT_EQ(own.name, "");
  EXPECT_EQ(own.address, reinterpret_cast<std::uint64_t>(&OwnFunction));
  EXPECT_EQ(symbolizer_.ImportAt(slot + 1).address, 0u);
#ifndef STATIC_PROGRAM
  std::uint64_t of_other;
  asm("lea getpid@GOTPCREL(%%rip), %0" : "=r"(of_other));
  const StoredAddress other = symbolizer_.ImportAt(of_other);
  EXPECT_EQ(other.name, "getpid");
  EXPECT_EQ(other.address, 0u);
#endif
}

#ifndef STATIC_PROGRAM
// The file of a library is replaced, as by an upgrade, while it is in use.
TEST_F(SelfTest, DeletedLibrary) {
  const std::string path = fmt::format("{}callback.{}.so", ::testing::TempDir(), getpid());
  {
    std::ifstream from(CALLBACK_LIBRARY, std::ios::binary);
    std::ofstream(path, std::ios::binary) << from.rdbuf();
  }
  void* library = dlopen(path.c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  ASSERT_EQ(unlink(path.c_str()), 0);
  std::ofstream(path) << "something else";
  const auto call = reinterpret_cast<int (*)(int (*)(void*), void*)>(dlsym(library, "CallBack"));
  struct Argument {
    SelfTest* test;
    Stack stack;
  } argument{this, {}};
  call(
      [](void* pointer) {
        auto* own = static_cast<Argument*>(pointer);
        own->test->Descend(1, 100, own->stack);
        return 0;
      },
      &argument);
  EXPECT_THAT(Functions(argument.stack), ::testing::Contains("main"));
  bool found = false;
  for (std::size_t i = 1; i < argument.stack.pcs.size(); ++i) {
    const CodePlace place = symbolizer_.ResolveCode(argument.stack.pcs[i] - 1);
    if (place.module == nullptr || place.module->path != path) continue;
    found = true;
    EXPECT_TRUE(place.module->deleted);
  }
  EXPECT_TRUE(found);
  dlclose(library);
  unlink(path.c_str());
}
#endif

}  // namespace
}  // namespace trapline
