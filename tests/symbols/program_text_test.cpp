// What the text of a program's sources says of atomic operations, their orders and fences.
#include "symbols/program_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

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
                                 "}\n");
  ProgramText text = Of(file);
  EXPECT_FALSE(text.MayBeAtomic(file, 6));
  EXPECT_TRUE(text.MayBeAtomic(file, 7));
  EXPECT_TRUE(text.MayBeAtomic(file, 8));
  EXPECT_FALSE(text.MayBeAtomic(file, 9));
  EXPECT_TRUE(text.MayBeAtomic(file, 10));
  EXPECT_TRUE(text.MayBeAtomic(file, 11));
}

// Of the store to `ready`: ProgramText::Store::before_fences, or -1 if it is not known which it is.
class StoreBeforeFencesTest : public ProgramTextTest {
 protected:
  int Of(const std::string& text, std::string_view name = {}) {
    const std::string file = Write("main.c", text);
    int line = 1;
    for (const char c : text.substr(0, text.find("ready, 1"))) line += c == '\n' ? 1 : 0;
    ProgramText program = ProgramTextTest::Of(file);
    EXPECT_TRUE(program.complete());
    const ProgramText::Store store = program.StoreAt(file, line, name);
    return store.known ? store.before_fences : -1;
  }
  static constexpr const char* kStore = "__atomic_store_n(&ready, 1, __ATOMIC_RELAXED);\n";
  static constexpr const char* kFence = "__atomic_thread_fence(__ATOMIC_RELEASE);\n";
};

TEST_F(StoreBeforeFencesTest, WhereEveryCallOfTheFunctionMakesItFirst) {
  const std::string store = kStore, fence = kFence, both = store + fence;
  for (const std::string& begin : std::vector<std::string>{
           "void F(void) {\n", "static inline int* F(int a, struct s* b) {\n",
           "int ready;\nnamespace a { namespace {\nextern \"C\" { void F() noexcept {\n"}) {
    const std::string end = begin.find("name") == std::string::npos ? "}\n" : "} } } }\n";
    for (const std::string& between : std::vector<std::string>{
             "", "if (a) { b = 1; } else { return; }\n", "for (int i = 0; i < 3; i++) G(i);\n",
             "if (__atomic_load_n(&ready, __ATOMIC_RELAXED)) return;\n",
             "__atomic_thread_fence(__ATOMIC_ACQUIRE);\n", "while (a) { b--; }\n"}) {
      EXPECT_GT(Of(begin + between + both + end), 0) << begin << between;
      EXPECT_GT(Of(begin + store + between + fence + end), 0) << begin << between;
    }
    EXPECT_GT(Of(begin + store + "if (a) " + fence + fence + end), 0);
  }
  EXPECT_GT(Of("void F(void) {\natomic_store_explicit(&x.ready, 1, memory_order_relaxed);\n"
               "atomic_thread_fence(memory_order_seq_cst); }"),
            0);
  EXPECT_EQ(Of("void F() {\n  a::x.\n  store(ready, 1);\n"
               "  std::atomic_thread_fence(std::memory_order_release);\n}",
               "store"),
            2);
}

TEST_F(StoreBeforeFencesTest, NotWhereAFenceMayComeFirst) {
  const std::string store = kStore, fence = kFence, both = store + fence;
  for (const std::string& text : std::vector<std::string>{
           // Not always executed, or not before.
           "void F(void) {\n" + fence + store + "}",
           "void F(void) {\n" + both + fence + "} void G() {" + fence + "}",
           "void F(void) {\nif (a)\n" + both + "}",
           "void F(void) {\nif (a) {\n" + store + "}\n" + fence + "}",
           "void F(void) {\nif (a) b(); else\n" + both + "}",
           "void F(void) {\nfor (;;)\n" + both + "}", "void F(void) {\nfor (;;) {\n" + both + "} }",
           "void F(void) {\nwhile (a)\n" + both + "}",
           "void F(void) {\ndo\n" + store + "while (0);\n" + fence + "}",
           "void F(void) {\nswitch (a) { case 1:\n" + both + "} }",
           "void F(void) {\nagain:\n" + both + "}",
           "void F(void) {\nif (a) goto end;\n" + store + "end: ;\n" + fence + "}",
           "void F(void) {\na ? b :\n" + both + "}", "void F(void) {\na &&\n" + both + "}",
           "void F(void) {\nFOREACH(x)\n" + both + "}",
           "void F(void) {\nFOREACH(x) {\n" + both + "} }",
           // The fence runs elsewhere.
           "void F(void) {\n" + store + "auto f = [] {\n" + fence + "}; }",
           "void F(void) {\n" + store + "if (a) {\n" + fence + "} }",
           "void F(void) {\n" + store + "}\nvoid G(void) {\n" + fence + "}",
           "void F(void) {\n" + both + "f = &my_fence; }",
           "void F(void) {\n" + both + "asm(\"mfence\"); }",
           "void F(void) {\n" + both + "publish_fence(); }",
           "#define P() __sync_synchronize()\nvoid F(void) {\n" + both + "}",
           // Run by threads of OpenMP's.
           "void F(void) {\n" + store + "_Pragma(\"omp parallel\")\n" + fence + "}",
           // Not the text that is compiled.
           "#define X a\nvoid F(void) {\nX;\n" + both + "}",
           "void F(void) {\n#ifdef A\n" + both + "#endif\n}",
           "void F(void) {\n" + both + "}\n#ifdef A\n{\n#endif\n",
           // No function, or no free one.
           "auto f = [] {\n" + both + "};", "class A { void F(void) {\n" + both + "} };",
           "void A::F(void) {\n" + both + "}", "template <class T> void F(T a) {\n" + both + "}",
           "void F(auto a) {\n" + both + "}", "void F(void) try {\n" + both + "} catch (...) {}",
           "F(x) {\n" + both + "}", "LOCK() F(x) {\n" + both + "}",
           "void F(a) int a; {\n" + both + "}", both,
           // Another object each time.
           "void F(int ready) {\n" + both + "}", "void F(void) { int ready;\n" + both + "}",
           "void F(int* ready) {\n" + both + "}", "void F(word& ready) {\n" + both + "}",
           "void F(void) { int a, ready;\n" + both + "}",
           "void F(word<int> ready) {\n" + both + "}",
           "void F(void) {\n__atomic_store_n(p->ready, 1, __ATOMIC_RELAXED);\n" + fence + "}",
           "void F(void) {\n__atomic_store_n(&p->ready, 1, __ATOMIC_RELAXED);\n" + fence + "}",
           "void F(void) {\n__atomic_store_n(&p[i].ready, 1, __ATOMIC_RELAXED);\n" + fence + "}",
           "void F(void) {\n__atomic_exchange_n(&ready, 1, __ATOMIC_RELAXED);\n" + fence + "}"}) {
    EXPECT_EQ(Of(text), 0) << text;
  }
  // Compiled for each who includes it.
  Write("other.c", "#include \"main.c\"\n");
  const std::string file = Write("main.c", "void F(void) {\n" + both + "}");
  ProgramText program({file, directory_ + "/other.c"}, {}, std::numeric_limits<std::time_t>::max());
  EXPECT_TRUE(program.complete());
  EXPECT_TRUE(program.StoreAt(file, 2, {}).known);
  EXPECT_EQ(program.StoreAt(file, 2, {}).before_fences, 0);
}

TEST_F(StoreBeforeFencesTest, AnyWhereThereAreSeveralOrNone) {
  const std::string store = kStore, fence = kFence;
  EXPECT_EQ(Of("void F(void) {\n__atomic_load_n(&a, 0); " + store + fence + "}"), -1);
  EXPECT_EQ(Of("void F(void) {\nready, 1;\n" + fence + "}"), -1);
  EXPECT_EQ(Of("void F(void) {\nready, 1;\n" + fence + "}", "store"), -1);
}

TEST_F(ProgramTextTest, ThreadsMix) {
  for (const char* mixes :
       {"co_await x;", "swapcontext(&a, &b);", "sigaction(SIGUSR1, &a, 0);", "signal(SIGINT, f);",
        "#include <ucontext.h>\n", "switch_to_fiber();"}) {
    EXPECT_TRUE(Of(Write("main.c", mixes)).MixesThreads()) << mixes;
  }
  EXPECT_FALSE(Of(Write("main.c", "struct context signal; condition.notify();")).MixesThreads());
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
