// oneTBB's allocator in place of the C library's: its free looks functions up when it is first
// called.
// CLEAN
// NEEDS tbb
// LINK -Wl,--no-as-needed -ltbbmalloc_proxy
// TSAN-DIFFERS the library is not instrumented
// BUILD O2
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "race.h"
#include "run_threads.h"

static std::mutex mutex;
static std::vector<std::unique_ptr<std::string>> strings;

static void HandOver() {
  for (int i = 0; i < 500; i++) {
    auto string = std::make_unique<std::string>(20 + i % 300, 'a');
    const std::lock_guard lock(mutex);
    if (strings.size() > 20) strings.pop_back();
    strings.push_back(std::move(string));
  }
}

int main() {
  RunThreads(HandOver, HandOver);
  return strings.size() == 21 ? Done() : 1;
}
