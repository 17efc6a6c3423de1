// Code with frames of every kind, to be stepped through by step_test: each instruction between the
// two SIGSTOPs is one at which a stack is taken.
#include <alloca.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))

namespace {

volatile int sink;
volatile int source = 3;

NOINLINE int Leaf(int value) {
  sink = value;
  return value + 1;
}

NOINLINE int Recursive(int depth) {
  if (depth == 0) return Leaf(depth);
  return Recursive(depth - 1) + 1;
}

// The frame's size is known at run time only: rbp holds the frame.
NOINLINE int DynamicFrame(int size) {
  char* room = static_cast<char*>(alloca(static_cast<std::size_t>(size)));
  memset(room, 1, static_cast<std::size_t>(size));
  return Leaf(room[size - 1]);
}

// Stack realigned: the CFA is an expression.
NOINLINE int Realigned(int size) {
  alignas(64) char buffer[64];
  char* room = static_cast<char*>(alloca(static_cast<std::size_t>(size)));
  memset(buffer, size, sizeof buffer);
  room[0] = buffer[1];
  sink = static_cast<int>(reinterpret_cast<std::uintptr_t>(buffer) & 63) + room[0];
  return Leaf(buffer[0]);
}

// Many callee-saved registers, many arguments on the stack.
NOINLINE long ManyArguments(long a, long b, long c, long d, long e, long f, long g, long h,
                            long i) {
  const long x = Leaf(1), y = Leaf(2), z = Leaf(3);
  return a + b * x + c * y + d * z + e + f * Leaf(static_cast<int>(x)) + g * y + h * z + i;
}

// A frame too large for a compact rule's usual offsets.
NOINLINE int LargeFrame() {
  char room[100000];
  memset(room, 2, 200);
  room[99999] = 1;
  return Leaf(room[source]);
}

struct Base {
  virtual ~Base() = default;
  virtual int Value(int) = 0;
};
struct Derived : Base {
  NOINLINE int Value(int depth) override { return Recursive(depth); }
};
Derived derived;
Base* volatile base = &derived;

int Compare(const void* a, const void* b) {
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

void Handler(int) { Recursive(2); }
void InformedHandler(int, siginfo_t*, void*) { DynamicFrame(100); }

NOINLINE void Signals() {
  struct sigaction action = {};
  action.sa_handler = Handler;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);

  stack_t alternate = {};
  alternate.ss_size = 65536;
  alternate.ss_sp = malloc(alternate.ss_size);
  sigaltstack(&alternate, nullptr);
  action.sa_sigaction = InformedHandler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGUSR2, &action, nullptr);
  raise(SIGUSR2);
}

NOINLINE void Everything() {
  Recursive(20);
  DynamicFrame(source * 50);
  Realigned(source * 30);
  ManyArguments(1, 2, 3, 4, 5, 6, 7, 8, source);
  LargeFrame();
  base->Value(4);
  int numbers[] = {5, 3, 4, 1, 2};
  qsort(numbers, 5, sizeof numbers[0], Compare);
  Signals();
  std::string text = "some text ";
  for (int i = 0; i < 3; ++i) text += text;
  std::vector<std::string> texts(3, text);
  sink = static_cast<int>(texts.size());
  char line[200];
  snprintf(line, sizeof line, "%s %.12g %d %*d", text.c_str(), 1.0 / source, source, 30, source);
  sink = static_cast<int>(strtod("1e-7", nullptr) * 1e9);
  sink = static_cast<int>(strlen(getenv("PATH") != nullptr ? getenv("PATH") : ""));
}

#ifdef __cpp_exceptions
NOINLINE void Thrower(int depth) {
  if (depth == 0) throw std::runtime_error("expected");
  Thrower(depth - 1);
  sink = depth;
}

NOINLINE void Exceptions() {
  try {
    Thrower(3);
  } catch (const std::runtime_error&) {
    Leaf(1);
  }
}
#else
void Exceptions() {}
#endif

}  // namespace

int main(int count, char**) {
  raise(SIGSTOP);
  Everything();
  if (count > 1) Exceptions();
  raise(SIGSTOP);
  return 0;
}
