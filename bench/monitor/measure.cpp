// The measured programs of the monitor's benchmarks: `measure WHAT` prints one number. They know
// nothing of Trapline and run natively and under the monitor alike; run.py compares.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double NanosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// Integer and floating-point work over 2 MiB of the thread's own, with unpredictable reads.
uint64_t PrivateWork(std::vector<double>& data, int rounds) {
  uint64_t state = 88172645463325252u;
  double sum = 0;
  for (int round = 0; round < rounds; ++round) {
    for (double& value : data) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      value = value * 0.5 + data[state % data.size()];
      sum += value;
    }
  }
  return state + static_cast<uint64_t>(sum);
}

// Seconds from the moment all threads have touched their memory to the moment all are done.
double Compute(int thread_count) {
  std::barrier ready(thread_count + 1);
  std::vector<std::thread> threads;
  std::vector<uint64_t> results(thread_count);
  threads.reserve(thread_count);
  for (int i = 0; i < thread_count; ++i) {
    threads.emplace_back([&, i] {
      std::vector<double> data(std::size_t{1} << 18, 1.0);
      results[i] = PrivateWork(data, 1);
      ready.arrive_and_wait();
      results[i] += PrivateWork(data, 1000);
    });
  }
  ready.arrive_and_wait();
  const Clock::time_point start = Clock::now();
  for (std::thread& thread : threads) thread.join();
  if (results[0] == 1) std::abort();  // keeps the work alive
  return NanosecondsSince(start) * 1e-9;
}

// Nanoseconds a page for the first write to each page of fresh anonymous memory.
double FirstTouch(int advice) {
  constexpr std::size_t kSize = std::size_t{256} << 20;
  constexpr std::size_t kPage = 4096;
  void* memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return -1;
  madvise(memory, kSize, advice);
  auto* bytes = static_cast<volatile char*>(memory);
  const Clock::time_point start = Clock::now();
  for (std::size_t at = 0; at < kSize; at += kPage) bytes[at] = 1;
  const double elapsed = NanosecondsSince(start);
  munmap(memory, kSize);
  return elapsed * kPage / kSize;
}

template <typename Operation>
double NanosecondsEach(int count, Operation operation) {
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < count; ++i) operation();
  return NanosecondsSince(start) / count;
}

double Measure(std::string_view what, int argument) {
  if (what == "compute") return Compute(argument);
  if (what == "touch") return FirstTouch(MADV_NOHUGEPAGE);
  if (what == "touch-default") return FirstTouch(MADV_NORMAL);
  if (what == "syscall") return NanosecondsEach(20000, [] { syscall(SYS_getppid); });
  if (what == "clock")
    return NanosecondsEach(1000000, [] {
      timespec now;
      clock_gettime(CLOCK_MONOTONIC, &now);
    });
  if (what == "thread") return NanosecondsEach(500, [] { std::thread([] {}).join(); });
  if (what == "fork")
    return NanosecondsEach(50, [] {
      const pid_t child = fork();
      if (child == 0) _exit(0);
      waitpid(child, nullptr, 0);
    });
  if (what == "map")
    return NanosecondsEach(2000, [] {
      constexpr std::size_t kSize = 1 << 16;
      void* memory =
          mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      *static_cast<volatile char*>(memory) = 1;
      munmap(memory, kSize);
    });
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  const double result = argc < 2 ? -1 : Measure(argv[1], argc > 2 ? std::atoi(argv[2]) : 0);
  if (result < 0) {
    std::fprintf(
        stderr,
        "usage: measure compute THREADS|touch|touch-default|syscall|clock|thread|fork|map\n");
    return 2;
  }
  std::printf("%.9g\n", result);
}
