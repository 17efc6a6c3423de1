// What the text of a program's sources says of atomic operations, their orders and fences.
#include "symbols/program_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "symbols/atomic_macros.h"
#include "symbols/source_text.h"

namespace trapline {
namespace {

using testing::ElementsAre;

StatedOrder FencesOf(const std::string& text) {
  const SourceText source(text);
  StatedOrder fences = FencesIn(source.tokens());
  for (const auto& directive : source.directives()) fences = fences | FencesIn(directive.tokens);
  return fences;
}

TEST(SourceText, StatementsEndAtSemicolonsAndBraces) {
  const SourceText text(
      "int f() { a = 1; /* b;\n"
      " */ c(\n"
      "  \"x;y\", 'z'); }\n");
  const auto words = [&](int line) {
    std::vector<std::string_view> found;
    for (const Token& token : text.StatementsAt(line)) found.push_back(token.text);
    return found;
  };
  EXPECT_THAT(words(2), ElementsAre("c", "(", "\"x;y\"", ",", "'z'", ")"));
  EXPECT_THAT(words(3), ElementsAre("c", "(", "\"x;y\"", ",", "'z'", ")", ";", "}"));
  EXPECT_TRUE(words(4).empty());
}

TEST(SourceText, RawStringsAndDirectivesHoldNoCode) {
  const SourceText text("#define A \\\n  fence\nx = R\"(\";\nmfence)\"; y;\n");
  ASSERT_EQ(text.directives().size(), 1u);
  EXPECT_EQ(text.directives()[0].tokens.back().text, "fence");
  EXPECT_EQ(text.tokens().back().line, 4);
  EXPECT_EQ(FencesIn(text.tokens()), StatedOrder::kNeither);
}

TEST(SourceText, StringsBehindNamesThatEndInRAreNotRaw) {
  const SourceText text(
      "printf(\"%\" PRIuPTR\"(\", a); mfence; s = u8R\"(\")\"; t = R\"a b(\"; dmb;\n");
  std::vector<std::string_view> strings;
  for (const Token& token : text.tokens()) {
    if (token.IsString()) strings.push_back(token.text);
  }
  EXPECT_THAT(strings, ElementsAre("\"%\"", "\"(\"", "\"(\")\"", "\"a b(\""));
  EXPECT_EQ(text.tokens().back().text, ";");
}

TEST(OperationsIn, CallsInCallsHaveTheirOwnArguments) {
  const SourceText text(
      "atomic_f(a, atomic_g(b, (c, d)), x[1, atomic_h(e)]), load<int>(p, memory_order_relaxed), "
      "atomic_i(q, {r, s");
  const Tokens tokens = text.tokens();
  std::vector<std::string> calls;
  const auto note = [&](const NamedOperation& call) {
    calls.emplace_back(call.name);
    for (const Tokens argument : call.arguments) {
      calls.back() += ' ';
      for (const Token& token : argument) calls.back() += token.text;
    }
    if (call.end == tokens.size()) calls.back() += " ...";
  };
  for (const auto& call : OperationsIn(tokens, "")) note(call);
  for (const auto& call : OperationsIn(tokens, "load")) note(call);
  EXPECT_THAT(calls,
              ElementsAre("atomic_f a atomic_g(b,(c,d)) x[1,atomic_h(e)]", "atomic_g b (c,d)",
                          "atomic_h e", "atomic_i q ...", "load p memory_order_relaxed"));
}

TEST(OperationsIn, TheOrderIsTheLastArgument) {
  const auto order = [](const std::string& text, std::string_view name) {
    const SourceText source(text);
    const auto operations = OperationsIn(source.tokens(), name);
    return operations.size() == 1 ? operations[0].order : StatedOrder::kBoth;
  };
  EXPECT_EQ(order("x.load(std::memory_order_relaxed)", "load"), StatedOrder::kNeither);
  EXPECT_EQ(order("x.load(::std::memory_order::consume)", "load"), StatedOrder::kAcquires);
  EXPECT_EQ(order("x.store(f(1, 2), std::memory_order_release)", "store"), StatedOrder::kReleases);
  EXPECT_EQ(order("__atomic_load_n(&x, __ATOMIC_ACQUIRE)", ""), StatedOrder::kAcquires);
  EXPECT_EQ(order("x.compare_exchange_weak(e, d, memory_order_release, memory_order_relaxed)",
                  "compare_exchange_weak"),
            StatedOrder::kReleases);
  EXPECT_EQ(order("x.compare_exchange_weak(e, d, memory_order_release, memory_order_acquire)",
                  "compare_exchange_weak"),
            StatedOrder::kBoth);
  EXPECT_EQ(order("x.compare_exchange_weak(e, d, memory_order_relaxed)", "compare_exchange_weak"),
            StatedOrder::kNeither);
  // Everything else is as strong as can be.
  EXPECT_EQ(order("x.load()", "load"), StatedOrder::kBoth);
  EXPECT_EQ(order("x.load(order)", "load"), StatedOrder::kBoth);
  EXPECT_EQ(order("x.load(relaxed)", "load"), StatedOrder::kBoth);
  EXPECT_EQ(order("x.load(c ? memory_order_acquire : memory_order_relaxed)", "load"),
            StatedOrder::kBoth);
  EXPECT_EQ(
      order("x.compare_exchange_weak(e, d, o, memory_order_relaxed)", "compare_exchange_weak"),
      StatedOrder::kBoth);
  EXPECT_EQ(order("__atomic_load_n(&x, ORDER(__ATOMIC_RELAXED))", ""), StatedOrder::kBoth);
  EXPECT_EQ(order("x.store(y, std::memory_order_relaxed", "store"), StatedOrder::kBoth);
}

TEST(FencesIn, ByNameAndOrder) {
  EXPECT_EQ(FencesOf("std::atomic_thread_fence(std::memory_order_release);"),
            StatedOrder::kReleases);
  EXPECT_EQ(FencesOf("__atomic_thread_fence(__ATOMIC_ACQUIRE);"), StatedOrder::kAcquires);
  for (const char* fence :
       {"atomic_thread_fence(order);", "__sync_synchronize();", "smp_wmb();", "_mm_mfence();",
        "pg_read_barrier();", "barrier();", "f = &my_fence;", "asm volatile(\"mfence\");",
        "__asm__ __volatile__(\"lock; addl $0,0(%%rsp)\" ::: \"memory\");",
        "asm volatile(\"\" ::: \"memory\");", "#define B() __sync_synchronize()\n"}) {
    EXPECT_EQ(FencesOf(fence), StatedOrder::kBoth) << fence;
  }
  for (const char* none :
       {"std::atomic_signal_fence(std::memory_order_release);", "pthread_barrier_wait(&b);",
        "std::barrier<> sync(2);", "size_mb = 1;", "asm volatile(\"pause\" ::: \"memory\");",
        "asm volatile(\"rep; nop\");", "asm volatile(\"\" : : \"r\"(x) : \"memory\");",
        "// a fence\n\"mfence\";", "#pragma omp barrier\n"}) {
    EXPECT_EQ(FencesOf(none), StatedOrder::kNeither) << none;
  }
}

class ProgramTextTest : public testing::Test {
 protected:
  ProgramTextTest() {
    char name[] = "/tmp/program_text_XXXXXX";
    directory_ = mkdtemp(name);
  }
  ~ProgramTextTest() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ + "/" + name) << text;
    return directory_ + "/" + name;
  }
  ProgramText Of(const std::string& file) {
    return {{file}, {}, std::numeric_limits<std::time_t>::max()};
  }

  std::string directory_;
};

TEST_F(ProgramTextTest, FencesOfHeadersCount) {
  Write("deep.h", "#define PUBLISH() __atomic_thread_fence(__ATOMIC_RELEASE)\n");
  Write("near.h", "#include \"deep.h\"\n");
  const ProgramText text = Of(Write("main.c", "#include <stdio.h>\n#include \"near.h\"\n"));
  EXPECT_TRUE(text.complete());
  EXPECT_EQ(text.fences(), StatedOrder::kReleases);
}

TEST_F(ProgramTextTest, NothingIsBelievedIfSomethingIsMissing) {
  const std::string load = "__atomic_load_n(&x, __ATOMIC_RELAXED);\n";
  const std::string whole = Write("whole.c", load);
  EXPECT_EQ(Of(whole).OrderAt(whole, 1, ""), StatedOrder::kNeither);
  const std::string parted = Write("parted.c", load + "#include \"missing.h\"\n");
  EXPECT_FALSE(Of(parted).complete());
  EXPECT_EQ(Of(parted).OrderAt(parted, 1, ""), StatedOrder::kBoth);
  EXPECT_TRUE(Of(parted).MayBeAtomic(parted, 2));
  // Younger than the program.
  EXPECT_FALSE(ProgramText({whole}, {}, 1).complete());
}

// What portable programs include on other systems is not there, and not missing.
TEST_F(ProgramTextTest, OtherSystemsHeadersAreNotMissing) {
  const auto is_whole = [&](const std::string& before, const std::string& behind) {
    return Of(Write("a.c", before + "\n#include <of_another.h>\n" + behind)).complete();
  };
  EXPECT_TRUE(is_whole("#ifdef _WIN32", "#endif\n"));
  EXPECT_TRUE(is_whole("#if defined(__APPLE__) || defined __FreeBSD__", "#else\n#endif\n"));
  EXPECT_TRUE(is_whole("#if defined(_MSC_VER) && _MSC_VER", "#endif\n"));
  EXPECT_TRUE(is_whole("#ifndef _WIN32\n#include <stdio.h>\n#else", "#endif\n"));
  EXPECT_TRUE(is_whole("#if !defined(_WIN32)\n#elif defined(ANYTHING)", "#endif\n"));
  EXPECT_TRUE(is_whole("#ifdef __linux__\n#else\n#if 1", "#endif\n#endif\n"));
  EXPECT_TRUE(is_whole("#if 0", "#endif\n"));
  EXPECT_FALSE(is_whole("#ifdef __linux__", "#endif\n"));
  EXPECT_TRUE(is_whole("#ifdef WIN32", "#endif\n"));
  EXPECT_TRUE(is_whole("#if (defined(WIN32) || defined(_WIN32)) && defined(WITH_IT)", "#endif\n"));
  EXPECT_TRUE(
      is_whole("#if defined(_MSC_VER) && _MSC_VER >= 1900 && AT_LEAST(3, (4))", "#endif\n"));
  EXPECT_TRUE(is_whole("#if _MSC_VER >= 1400", "#endif\n"));
  EXPECT_TRUE(is_whole("#if (__BORLANDC__ == 550) && WITH_IT", "#endif\n"));
  EXPECT_FALSE(is_whole("#if _MSC_VER >= 0", "#endif\n"));
  EXPECT_FALSE(is_whole("#if _MSC_VER >= 1 - 1", "#endif\n"));
  EXPECT_FALSE(is_whole("#if !_MSC_VER >= 1", "#endif\n"));
  EXPECT_TRUE(is_whole("#if !(defined(__linux__) || WITH_IT == 3)", "#endif\n"));
  EXPECT_FALSE(is_whole("#if !defined(WIN32) && (_MSC_VER >= 1900 || WITH_IT)", "#endif\n"));
  EXPECT_FALSE(is_whole("#if (defined(_WIN32)", "#endif\n"));
  EXPECT_FALSE(is_whole("#if defined(_WIN32))", "#endif\n"));
  EXPECT_FALSE(is_whole("#if " + std::string(1000000, '(') + "0", "#endif\n"));
  EXPECT_FALSE(is_whole("#if defined(_WIN32) && defined()", "#endif\n"));
  EXPECT_FALSE(is_whole("#ifndef _WIN32", "#endif\n"));
  EXPECT_FALSE(is_whole("#ifdef _WIN32\n#else", "#endif\n"));
  EXPECT_FALSE(is_whole("#ifdef _WIN32\n#endif", ""));
  EXPECT_FALSE(is_whole("#if defined(_WIN32) || defined(WITH_IT)", "#endif\n"));
  EXPECT_FALSE(is_whole("#if _WIN32 == 0", "#endif\n"));
  EXPECT_FALSE(is_whole("#if defined(_WIN32) || 1 && 1", "#endif\n"));
  EXPECT_FALSE(is_whole("#if !(", "#endif\n"));
  EXPECT_FALSE(is_whole("#if defined(", "#endif\n"));
  EXPECT_FALSE(is_whole("#endif\n#else\n#elif 0", ""));
}

TEST_F(ProgramTextTest, OrdersWhereNothingElseIsAtomic) {
  const std::string file = Write("main.c",
                                 "#define READ(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)\n"
                                 "typedef _Atomic int word;\n"
                                 "word flag, other;\n"
                                 "void f(int plain) {\n"
                                 "plain = atomic_load_explicit(&flag, memory_order_relaxed);\n"
                                 "plain = READ(x) + __atomic_load_n(&y, __ATOMIC_RELAXED);\n"
                                 "plain = other + __atomic_load_n(&y, __ATOMIC_RELAXED);\n"
                                 "plain = __atomic_load_n(&y, __ATOMIC_RELAXED) +\n"
                                 "  __atomic_load_n(&x, __ATOMIC_ACQUIRE);\n"
                                 "}\n");
  ProgramText text = Of(file);
  EXPECT_EQ(text.OrderAt(file, 5, ""), StatedOrder::kNeither);
  EXPECT_EQ(text.OrderAt(file, 6, ""), StatedOrder::kBoth);
  EXPECT_EQ(text.OrderAt(file, 7, ""), StatedOrder::kBoth);
  EXPECT_EQ(text.OrderAt(file, 8, ""), StatedOrder::kAcquires);
}

TEST_F(ProgramTextTest, PlainIsWhatHidesNothing) {
  const std::string file = Write("main.c",
                                 "#define READ(x) INNER(x)\n"
                                 "#define INNER(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)\n"
                                 "#define TWICE(x) ((x) + (x))\n"
                                 "int counter; volatile int polled; _Atomic int flag;\n"
                                 "void f(int plain) {\n"
                                 "plain = TWICE(counter);\n"
                                 "plain = READ(counter);\n"
                                 "plain = polled;\n"
                                 "polled = polled + 1;\n"
                                 "plain = flag;\n"
                                 "asm(\"mov %1, %0\" : \"=r\"(plain) : \"m\"(counter));\n"
                                 "polled = counter;\n"
                                 "polled = counter; plain = polled;\n"
                                 "}\n");
  ProgramText text = Of(file);
  EXPECT_FALSE(text.MayBeAtomic(file, 12));
  EXPECT_TRUE(text.MayBeAtomic(file, 13));
  EXPECT_FALSE(text.MayBeAtomic(file, 6));
  EXPECT_TRUE(text.MayBeAtomic(file, 7));
  EXPECT_TRUE(text.MayBeAtomic(file, 8));
  EXPECT_FALSE(text.MayBeAtomic(file, 9));
  EXPECT_TRUE(text.MayBeAtomic(file, 10));
  EXPECT_TRUE(text.MayBeAtomic(file, 11));
}

// @S is a store to `ready`, @F a release fence, each on a line of its own.
class StoreBeforeFencesTest : public ProgramTextTest {
 protected:
  static std::string Expanded(std::string text) {
    const auto replace = [&](const std::string& mark, const std::string& by) {
      for (std::size_t at = 0; (at = text.find(mark)) != std::string::npos;)
        text.replace(at, mark.size(), by);
    };
    replace("@S", "\n__atomic_store_n(&ready, 1, __ATOMIC_RELAXED);\n");
    replace("@F", "\n__atomic_thread_fence(__ATOMIC_RELEASE);\n");
    return text;
  }
  // ProgramText::Store::before_fences of the store; -1 if it is not known which store it is.
  int Of(const std::string& marked, std::string_view name = {}) {
    const std::string text = Expanded(marked);
    const std::string file = Write("main.c", text);
    const auto store = static_cast<std::ptrdiff_t>(text.find("ready, 1"));
    const auto line = 1 + std::count(text.begin(), text.begin() + store, '\n');
    ProgramText program = ProgramTextTest::Of(file);
    EXPECT_TRUE(program.complete());
    const ProgramText::Store found = program.StoreAt(file, static_cast<int>(line), name);
    return found.known ? found.before_fences : -1;
  }
};

TEST_F(StoreBeforeFencesTest, WhereEveryCallOfTheFunctionMakesItFirst) {
  for (const std::string body :
       {"@S @F", "if (a) { b = 1; } else { return; } @S @F", "@S if (a) { return; } @F",
        "for (int i = 0; i < 3; i++) G(i); @S @F", "@S while (a) { b--; } @F", "@S if (a) @F @F",
        "if (__atomic_load_n(&ready, __ATOMIC_RELAXED)) return; @S @F",
        "__atomic_thread_fence(__ATOMIC_ACQUIRE); @S @F"}) {
    EXPECT_GT(Of("void F(void) {" + body + "}"), 0) << body;
    EXPECT_GT(Of("static inline int* F(int a, struct s* b) {" + body + "}"), 0) << body;
    EXPECT_GT(Of("int ready; namespace a { namespace { extern \"C\" { void F() noexcept {" + body +
                 "} } } }"),
              0)
        << body;
  }
  EXPECT_GT(Of("void F(void) { atomic_store_explicit(&x.ready, 1, memory_order_relaxed);\n"
               "atomic_thread_fence(memory_order_seq_cst); }"),
            0);
  EXPECT_EQ(Of("void F() {\n  a::x.\n  store(ready, 1);\n"
               "  std::atomic_thread_fence(std::memory_order_release);\n}",
               "store"),
            2);
}

TEST_F(StoreBeforeFencesTest, NotWhereAFenceMayComeFirst) {
  for (const std::string text :
       {"void F(void) { @F @S }", "void F(void) { @S @F } void G() { @F }",
        "void F(void) { if (a) @S @F }", "void F(void) { if (a) { @S } @F }",
        "void F(void) { if (a) b(); else @S @F }", "void F(void) { for (;;) @S @F }",
        "void F(void) { for (;;) { @S @F } }", "void F(void) { while (a) @S @F }",
        "void F(void) { do @S while (0); @F }", "void F(void) { switch (a) { case 1: @S @F } }",
        "void F(void) { again: @S @F }", "void F(void) { if (a) goto end; @S end: ; @F }",
        "void F(void) { a ? b : @S @F }", "void F(void) { a && @S @F }",
        "void F(void) { if (G(T{})) @S @F }", "void F(void) { FOREACH(x) @S @F }",
        "void F(void) { FOREACH(x) { @S @F } }"}) {
    EXPECT_EQ(Of(text), 0) << text;
  }
}

TEST_F(StoreBeforeFencesTest, NotWhereTheFenceMayRunElsewhere) {
  for (const std::string text :
       {"void F(void) { @S auto f = [] { @F }; }", "void F(void) { @S if (a) { @F } }",
        "void F(void) { @S } void G(void) { @F }", "void F(void) { @S @F f = &my_fence; }",
        "void F(void) { @S @F asm(\"mfence\"); }", "void F(void) { @S @F publish_fence(); }",
        "void F(void) { @S _Pragma(\"omp parallel\") @F }",
        "#define P() __sync_synchronize()\nvoid F(void) { @S @F }"}) {
    EXPECT_EQ(Of(text), 0) << text;
  }
}

TEST_F(StoreBeforeFencesTest, NotWhereTheTextIsNotOneFunction) {
  for (const std::string text :
       {"#define X a\nvoid F(void) { X; @S @F }", "void F(void) {\n#ifdef A\n @S @F \n#endif\n}",
        "void F(void) { @S @F }\n#ifdef A\n{\n#endif\n", "auto f = [] { @S @F };",
        "class A { void F(void) { @S @F } };", "void A::F(void) { @S @F }",
        "template <class T> void F(T a) { @S @F }", "void F(auto a) { @S @F }",
        "void F(void) try { @S @F } catch (...) {}", "F(x) { @S @F }", "LOCK() F(x) { @S @F }",
        "void F(a) int a; { @S @F }", "@S @F"}) {
    EXPECT_EQ(Of(text), 0) << text;
  }
  // Compiled for each who includes it.
  const std::string file = Write("main.c", Expanded("void F(void) { @S @F }"));
  const std::string other = Write("other.c", "#include \"main.c\"\n");
  ProgramText program({file, other}, {}, std::numeric_limits<std::time_t>::max());
  EXPECT_TRUE(program.complete());
  EXPECT_TRUE(program.StoreAt(file, 2, {}).known);
  EXPECT_EQ(program.StoreAt(file, 2, {}).before_fences, 0);
}

TEST_F(StoreBeforeFencesTest, NotToWhatMayBeAnotherObjectEachTime) {
  for (const std::string text :
       {"void F(int ready) { @S @F }", "void F(int* ready) { @S @F }",
        "void F(word& ready) { @S @F }", "void F(word<int> ready) { @S @F }",
        "void F(void) { int ready; @S @F }", "void F(void) { int a, ready; @S @F }",
        "void F(void) { __atomic_store_n(p->ready, 1, __ATOMIC_RELAXED); @F }",
        "void F(void) { __atomic_store_n(&p->ready, 1, __ATOMIC_RELAXED); @F }",
        "void F(void) { __atomic_store_n(&p[i].ready, 1, __ATOMIC_RELAXED); @F }",
        "void F(void) { __atomic_exchange_n(&ready, 1, __ATOMIC_RELAXED); @F }"}) {
    EXPECT_EQ(Of(text), 0) << text;
  }
}

TEST_F(StoreBeforeFencesTest, AnyWhereThereAreSeveralOrNone) {
  EXPECT_EQ(Of("void F(void) {\n__atomic_load_n(&a, 0); __atomic_store_n(&ready, 1, 0); @F }"), -1);
  EXPECT_EQ(Of("void F(void) { ready, 1; @F }"), -1);
  EXPECT_EQ(Of("void F(void) { ready, 1; @F }", "store"), -1);
}

TEST_F(ProgramTextTest, ThreadsMix) {
  for (const char* mixes :
       {"co_await x;", "swapcontext(&a, &b);", "sigaction(SIGUSR1, &a, 0);", "signal(SIGINT, f);",
        "#include <ucontext.h>\n", "switch_to_fiber();"}) {
    EXPECT_TRUE(Of(Write("main.c", mixes)).MixesThreads()) << mixes;
  }
  EXPECT_FALSE(Of(Write("main.c", "struct context signal; condition.notify();")).MixesThreads());
}

TEST_F(ProgramTextTest, MacrosMayStandForAtomicOperations) {
  constexpr std::time_t kNow = std::numeric_limits<std::time_t>::max();
  Write("deep.h",
        "#define SET_WITH(x, value, order) \\\n"
        "  __atomic_store_n(&(x), (value), (order))\n");
  Write("near.h",
        "# include <deep.h>\n"
        "#define SET(x, value) SET_WITH(x, value, __ATOMIC_RELEASE)\n");
  const std::string file = Write("main.c",
                                 "#include \"near.h\"\n"
                                 "#define ORDER __atomic_thread_fence(__ATOMIC_RELEASE)\n"
                                 "#define ONCE(x) (*(volatile int*)&(x))\n"
                                 "#include \"missing.h\"\n"
                                 "void f(int x, int y) { // SET(x, y)\n"
                                 "SET(x,\n"
                                 "    (y));\n"
                                 "ORDER; x = y;\n"
                                 "ONCE(x) = y;\n"
                                 "__atomic_store_n(&x, y, __ATOMIC_RELEASE);\n"
                                 "}\n");
  AtomicMacros macros({file}, {directory_}, kNow);
  EXPECT_FALSE(macros.empty());
  for (const int line : {6, 7}) EXPECT_TRUE(macros.AreUsedAt(file, line)) << line;
  for (const int line : {0, 1, 2, 5, 8, 9, 10, 11, 12})
    EXPECT_FALSE(macros.AreUsedAt(file, line)) << line;
  EXPECT_FALSE(macros.AreUsedAt(file + "x", 6));
  EXPECT_FALSE(
      AtomicMacros({Write("pasted.c", "#define DO(what, x) __atomic_##what(x)\n")}, {}, kNow)
          .empty());
  EXPECT_TRUE(AtomicMacros({file}, {directory_}, 0).empty());  // younger than the program
  EXPECT_TRUE(AtomicMacros({Write("other.c", "#define X(y) y\n#define")}, {}, kNow).empty());
}

// Accesses to volatile variables, in headers of the system's.
TEST_F(ProgramTextTest, MacrosOfUserspaceRcuStandForAtomicOperations) {
  const std::string text =
      "#include <urcu/uatomic.h>\n"
      "#define PUBLISH(x, y) rcu_assign_pointer(x, y)\n"
      "void f(int x, int y) {\n"
      "uatomic_set(&x, 1);\n"
      "x = y;\n"
      "}\n";
  constexpr std::time_t kNow = std::numeric_limits<std::time_t>::max();
  const std::string file = Write("rcu.c", text);
  AtomicMacros macros({file}, {directory_}, kNow);
  EXPECT_TRUE(macros.AreUsedAt(file, 4));
  EXPECT_FALSE(macros.AreUsedAt(file, 5));
  const std::string other = Write("other.c", text.substr(text.find('\n')));
  EXPECT_TRUE(AtomicMacros({other}, {directory_}, kNow).empty());
}

// As long as some that programs write for compilers; more than a stack would hold, if each macro
// took a part of it, and than there is time for if each were looked at for each other.
TEST_F(ProgramTextTest, MacrosAndTypesMayStandForOneAnotherThroughMany) {
  constexpr int kMany = 100000;
  std::string text = "#define M0 __atomic_load_n(&x, 0)\n#define N0 1\ntypedef _Atomic int T0;\n";
  for (int i = kMany; i > 0; --i) {
    for (const char* const name : {"#define M", "#define N"})
      text += name + std::to_string(i) + ' ' + (name + 8) + std::to_string(i - 1) + '\n';
    text += "typedef T" + std::to_string(i - 1) + " T" + std::to_string(i) + ";\n";
  }
  const std::string last = std::to_string(kMany);
  const auto line = static_cast<int>(std::ranges::count(text, '\n')) + 1;
  text += 'T' + last + " v;\na = N" + last + ";\na = M" + last + ";\na = v;\n";
  const std::string file = Write("main.c", text);
  ProgramText program = Of(file);
  EXPECT_FALSE(program.MayBeAtomic(file, line + 1));
  EXPECT_TRUE(program.MayBeAtomic(file, line + 2));
  EXPECT_TRUE(program.MayBeAtomic(file, line + 3));
  AtomicMacros macros({file}, {}, std::numeric_limits<std::time_t>::max());
  EXPECT_FALSE(macros.AreUsedAt(file, line + 1));
}

TEST_F(ProgramTextTest, MacrosMayStandForOneAnother) {
  const std::string file = Write("main.c",
                                 "#define A B C\n#define B A\n#define C __atomic_load_n(p, 0)\n"
                                 "#define D E\n#define E D\n"
                                 "x = A;\nx = B;\nx = D;\nx = E;\n");
  ProgramText text = Of(file);
  EXPECT_TRUE(text.MayBeAtomic(file, 6));
  EXPECT_TRUE(text.MayBeAtomic(file, 7));
  EXPECT_FALSE(text.MayBeAtomic(file, 8));
  EXPECT_FALSE(text.MayBeAtomic(file, 9));
}

TEST_F(ProgramTextTest, WhatAnAtomicReferenceIsToIsPlain) {
  const std::string file = Write("main.cpp",
                                 "long sums[4];\n"
                                 "void f() { std::atomic_ref<long> cell(sums[0]); cell += 1; }\n"
                                 "long g() { return sums[0]; }\n"
                                 "long h(std::atomic_ref<long> other) { return other; }\n");
  ProgramText text = Of(file);
  EXPECT_TRUE(text.MayBeAtomic(file, 2));
  EXPECT_FALSE(text.MayBeAtomic(file, 3));
  EXPECT_TRUE(text.MayBeAtomic(file, 4));
}

TEST_F(ProgramTextTest, FencesAreNoBuiltinOperations) {
  EXPECT_FALSE(
      Of(Write("a.c", "__sync_synchronize(); __atomic_thread_fence(1);")).CallsAtomicBuiltins());
  EXPECT_TRUE(Of(Write("b.c", "__atomic_store_n(&x, 1, 0);")).CallsAtomicBuiltins());
  EXPECT_TRUE(
      Of(Write("c.c", "#define ADD(x) __sync_fetch_and_add(&(x), 1)\n")).CallsAtomicBuiltins());
}

TEST_F(ProgramTextTest, AnyTextEnds) {
  for (const char* odd : {"",
                          "#",
                          "\\",
                          "#define",
                          "\"",
                          "R\"",
                          "R\"(",
                          "'",
                          "/*",
                          "f(",
                          "__atomic_(",
                          "asm",
                          "asm(",
                          "#include",
                          "#include \"",
                          "typedef _Atomic",
                          "__atomic_store_n(&x, 1)",
                          "atomic_thread_fence() {",
                          "void f() { __atomic_store_n(&x); __sync_synchronize(); }",
                          "inline { __atomic_store_n(&x, 1); __sync_synchronize(); }",
                          "}{"}) {
    const std::string file = Write("odd.c", odd);
    ProgramText text = Of(file);
    static_cast<void>(text.OrderAt(file, 1, ""));
    static_cast<void>(text.StoreAt(file, 1, ""));
    static_cast<void>(text.MayBeAtomic(file, 1));
  }
}

}  // namespace
}  // namespace trapline
